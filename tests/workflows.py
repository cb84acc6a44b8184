#!/usr/bin/python3
"""Fails when .github/workflows or action.yml is not what GitHub would take, or asks for more than it
needs. Its own check of the form, as GitHub's is not here: strict YAML, the keys that we use, rights
named and small, no secret, no text of others in a shell's command.

usage: tests/workflows.py
"""
import glob
import os
import re
import sys

import yaml

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), ".."))
WORKFLOW_KEYS = {"name", "on", "permissions", "concurrency", "jobs"}
JOB_KEYS = {"needs", "runs-on", "container", "timeout-minutes", "permissions", "strategy", "steps"}
STEP_KEYS = {"name", "uses", "with", "run", "env", "shell"}
RIGHTS = {
    "contents": {"read", "write"},
    "packages": {"write"},
    "id-token": {"write"},
    "attestations": {"write"},
}
# What an expression may name. Of what comes from others, such as the title of a pull request, none
# may, and the only credential is the run's own.
EXPRESSION = re.compile(
    r"\$\{\{ (github\.(token|actor|ref|repository|action_ref|action_repository)"
    r"|github\.event\.release\.tag_name|matrix\.[a-z]+|vars\.[A-Z]+|inputs\.[a-z0-9]+) \}\}"
)


class Strict(yaml.SafeLoader):
    """No key twice, and `on` is a word."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(
                    None, None, f"{key} twice", node.start_mark
                )
        return super().construct_mapping(node, deep)


Strict.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:bool"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


class Checker:
    def __init__(self, name):
        self.name = name
        self.problems = []
        with open(os.path.join(ROOT, name), encoding="utf-8") as file:
            self.text = file.read()
        self.tree = yaml.load(self.text, Strict)

    def require(self, condition, problem):
        if not condition:
            self.problems.append(f"{self.name}: {problem}")
        return condition

    def only(self, where, mapping, known):
        if self.require(isinstance(mapping, dict), f"{where}: is no mapping"):
            self.require(not set(mapping) - known, f"{where}: unknown {set(mapping) - known}")

    def expressions(self):
        rest = EXPRESSION.sub("", self.text)
        self.require("${{" not in rest, f"unknown expression: {rest[rest.find('${{'):][:60]!r}")
        self.require("secrets" not in self.text, "names a secret")

    def permissions(self, where, rights):
        self.require(isinstance(rights, dict), f"{where}: names no rights")
        for right, level in (rights or {}).items():
            self.require(level in RIGHTS.get(right, ()), f"{where}: {right}: {level}")

    def step(self, where, step):
        self.only(where, step, STEP_KEYS)
        self.require(("uses" in step) != ("run" in step), f"{where}: either uses or run")
        if "uses" in step:
            self.require(
                re.fullmatch(r"[a-z-]+/[a-z-]+@v[0-9]+", step["uses"]),
                f"{where}: {step['uses']} has no version",
            )
        command = step.get("run", "")
        self.require("${{" not in command, f"{where}: an expression in a shell's command")
        for script in re.findall(r"(?:^|[ /\"])((?:packaging|tests)/[^ \"]+)", command):
            self.require(os.access(os.path.join(ROOT, script), os.X_OK), f"{where}: no {script}")
        for preset in re.findall(r"--preset ([a-z]+)", command):
            with open(os.path.join(ROOT, "CMakePresets.json"), encoding="utf-8") as file:
                self.require(f'"name": "{preset}"' in file.read(), f"{where}: no preset {preset}")

    def workflow(self):
        self.only("", self.tree, WORKFLOW_KEYS)
        self.require(self.tree.get("on"), "is started by nothing")
        self.require(
            self.tree.get("permissions") == {"contents": "read"}, "its rights are not to read alone"
        )
        jobs = self.tree.get("jobs") or {}
        self.require(jobs, "has no jobs")
        for name, job in jobs.items():
            self.only(name, job, JOB_KEYS)
            self.require(job.get("runs-on"), f"{name}: runs nowhere")
            self.require(int(job.get("timeout-minutes", 0)), f"{name}: has no limit")
            self.require(job.get("needs", name) in jobs, f"{name}: needs {job.get('needs')}")
            if "permissions" in job:
                self.permissions(name, job["permissions"])
            self.require(job.get("steps"), f"{name}: has no steps")
            for number, step in enumerate(job.get("steps") or [], 1):
                self.step(f"{name}, step {number}", step)

    def action(self):
        self.only("", self.tree, {"name", "description", "inputs", "runs"})
        inputs = self.tree["inputs"]
        for name, about in inputs.items():
            self.only(name, about, {"description", "required", "default"})
            self.require("description" in about, f"{name}: has no description")
            self.require(("default" in about) != (about.get("required") == "true"), f"{name}: default")
        runs = self.tree["runs"]
        self.require(runs["using"] == "composite", "is not composite")
        [step] = runs["steps"]
        self.step("its step", step)
        given = set(re.findall(r"inputs\.([a-z0-9]+)", str(step["env"])))
        self.require(given == set(inputs), f"its step gets {given}")
        with open(
            os.path.join(ROOT, "packaging/github-action/run.sh"), encoding="utf-8"
        ) as file:
            script = file.read()
        read = set(re.findall(r"\bLOCK_[A-Z0-9]+", script))
        given = {variable for variable in step["env"] if variable.startswith("LOCK_")}
        self.require(read == given, f"run.sh knows {read ^ given}")
        unset = script[script.find("\nunset ") :].split("\nexec")[0]
        self.require(all(variable in unset for variable in given), "the command sees the inputs")


def main():
    os.chdir(ROOT)
    checkers = []
    for name in sorted(glob.glob(".github/workflows/*")):
        checkers.append(Checker(name))
        checkers[-1].workflow()
    checkers.append(Checker("action.yml"))
    checkers[-1].action()
    problems = []
    for checker in checkers:
        checker.expressions()
        problems += checker.problems
    for problem in problems:
        print(f"workflows: {problem}")
    print(f"workflows: {len(checkers)} files, {len(problems)} problems")
    sys.exit(1 if problems or len(checkers) < 4 else 0)


if __name__ == "__main__":
    main()
