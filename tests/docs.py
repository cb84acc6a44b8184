#!/usr/bin/python3
"""Fails when the documents and the program say different things: the options of each command
(manual), their defaults, the exit codes (manual, README), the settings, the rights that the scripts
need, the fields of JSON, the version; when a manual page is not clean, or a link leads nowhere.

usage: REDLOCK_CLI=build/dev/src/redlock-cli tests/docs.py
"""
import functools
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "bench"))
import chart  # noqa: E402


# The manual: what concerns every command, and the page of each command that has options of its own.
OVERVIEW = "man/redlock-cli.1"
PAGE_OF = {
    "run": "man/redlock-cli-run.1",
    "acquire": "man/redlock-cli-acquire.1",
    "hold": "man/redlock-cli-hold.1",
    "extend": "man/redlock-cli-extend.1",
    "release": "man/redlock-cli-release.1",
    "stop": "man/redlock-cli-stop.1",
    "status": "man/redlock-cli-status.1",
    "doctor": "man/redlock-cli-doctor.1",
}
SERVERS = "man/redlock-cli-servers.7"
SETTINGS = "man/redlock-cli.toml.5"
OUTPUT = "man/redlock-cli-output.5"
SCHEMA = "docs/output.schema.json"

# What is compared, of which no setting of the caller's shall be seen.
if "REDLOCK_CLI" not in os.environ:
    sys.exit("docs: REDLOCK_CLI must name the program to compare with")
CLI = os.path.realpath(os.environ["REDLOCK_CLI"])
ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith("REDLOCK_") and name != "BASH_ENV"
}
ENVIRONMENT["LC_ALL"] = "C.UTF-8"


class Tree:
    """The files of a repository."""

    def __init__(self, root):
        self.root = root

    def path(self, name):
        return os.path.join(self.root, name)

    def text(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def glob(self, pattern):
        return sorted(glob.glob(pattern, root_dir=self.root))


class Problems(list):
    """A line each."""

    def same(self, what, expected, found):
        """In any order: says what is missing and what is too much."""
        expected, found = set(expected), set(found)
        if not expected:
            self.append(f"{what}: nothing to compare with")
        if missing := sorted(expected - found):
            self.append(f"{what}: missing: {'; '.join(missing)}")
        if extra := sorted(found - expected):
            self.append(f"{what}: unknown to the program: {'; '.join(extra)}")


def output_of(*command, text=""):
    return subprocess.run(
        command,
        input=text,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    ).stdout


# --- What the program says. ---


@functools.cache
def help_text(*command):
    return output_of(CLI, *command, "--help-all")


def commands():
    block = re.search(r"^Commands:\n(.*?)(?:\n\n|\Z)", help_text(), re.M | re.S)
    return re.findall(r"^  ([a-z]+) ", block[1], re.M) if block else []


def help_options(*command):
    """Its options as `--help` shows them: `-w,--wait,--timeout DUR`."""
    return [line.split("  ")[0] for line in re.findall(r"^  (-.*)", help_text(*command), re.M)]


def help_defaults(command):
    """(name, default) of each option that has one."""
    options = re.findall(r"^  -.*(?:\n {6}.*)*", help_text(command), re.M)
    for option in options:
        text = re.sub(r"\n +", " ", option)
        if default := re.search(r"\(default: (.*)\)$", text):
            yield re.search(r"--[a-z-]+", option)[0], default[1]


@functools.cache
def long_names():
    """The name of each option, by each of its spellings; but for those that ask what the program
    is."""
    options = {option for command in commands() for option in help_options(command)}
    spellings = [option.split(" ")[0].split(",") for option in options]
    names = {
        flag: next(flag for flag in flags if flag.startswith("--"))
        for flags in spellings
        for flag in flags
    }
    about_us = ["--help", "--help-all", "--version"]
    return {flag: name for flag, name in names.items() if name not in about_us}


def help_exit_codes():
    """`CODE: MEANING`."""
    block = re.search(r"^Exit codes:\n(.*?)(?:\n\n|\Z)", help_text(), re.M | re.S)
    lines = re.sub(r"\n {12}", " ", block[1]) if block else ""
    return [
        f"{code}: {meaning}"
        for code, meaning in re.findall(r"^ +([0-9]+(?:, [0-9]+)*)  +(.*)", lines, re.M)
    ]


@functools.cache
def settings():
    """(name, default or None) of each option that may be set in a variable."""
    return {
        setting["name"]: setting["default"]
        for setting in json.loads(output_of(CLI, "doctor", "--settings", "--json"))["settings"]
    }


@functools.cache
def file_options():
    """Those of them that a file may set, too."""
    names = []
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        for name in settings():
            file.seek(0)
            file.truncate()
            print(f'{name} = "planted"', file=file, flush=True)
            if "not in a file" not in output_of(CLI, "doctor", "--settings", "--config", file.name):
                names.append(name)
    return names


# --- What the manual says, as it is shown, a paragraph a line. ---


@functools.cache
def lint(page):
    """What mandoc and groff have to say, but for whether the manuals of other programs are
    installed here, and for the order of sections: ours is that of util-linux, with EXIT STATUS
    behind OPTIONS."""
    mandoc = output_of("mandoc", "-Tlint", "-W", "style", text=page).replace("<stdin>", "line")
    groff = output_of("groff", "-mandoc", "-ww", "-z", "-", text=page).replace(
        "<standard input>", "line"
    )
    return "; ".join(
        line
        for line in (mandoc + groff).splitlines()
        if not re.search("referenced manual not found|mandoc.db|conventional order", line)
    )


@functools.cache
def shown(page, device, width=900):
    """Overstruck letters are how a terminal shows bold and underlined ones."""
    text = subprocess.run(
        ["mandoc", "-T" + device, f"-Owidth={width}"],
        input=page,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
    ).stdout
    return re.sub(r".\x08", "", text)


def section(page, title):
    """Its lines."""
    inside = False
    for line in shown(page, "ascii").splitlines():
        if re.match(r"[A-Z]", line):
            inside = line == title
        elif inside:
            yield line


def titles(page):
    """Of its sections and subsections."""
    return {
        line.strip()
        for line in shown(page, "ascii").splitlines()
        if re.match(r"([A-Z]| {3}\S)", line)
    }


def is_of(subsection, command):
    """Whether the options in it are for the command."""
    words = f" {subsection} ".replace(",", " ")
    if command is None or " without a command " in words:
        return command is None and " without a command " in words
    return (
        not words.startswith(" Options of ")
        or " every command " in words
        or f" {command} " in words
    )


def option_lines(page, command):
    """The lines of OPTIONS that are for the command."""
    mine = is_of("", command)
    for line in section(page, "OPTIONS"):
        if re.match(r" {3}[A-Z]", line):
            mine = is_of(line.strip(), command)
        elif mine:
            yield line


def man_options(page, command=None):
    return [
        line.strip().split("  ")[0].replace(", ", ",")
        for line in option_lines(page, command)
        if re.match(r" {5}-", line)
    ]


def man_defaults(page, command):
    """`--name TEXT` for each paragraph about an option."""
    name = None
    for line in option_lines(page, command):
        if re.match(r" {5}-", line):
            long = re.search(r"--[a-z-]+", line)
            name = long and long[0]
        elif name and line.strip():
            yield f"{name} {line.strip()}"


def man_settings(page):
    """(name, default or None)."""
    for line in section(page, "SETTINGS"):
        if setting := re.match(r" {5}([a-z-]+) {2,}(.*)", line):
            default = re.search(r" Default: (.*)\.$", setting[2])
            yield setting[1], default and default[1]


def man_listed(page, title):
    """The options of a list in DESCRIPTION, by their names."""
    listed = re.search(
        re.escape(title) + r": (.*?)\.(?: |$)", "\n".join(section(page, "DESCRIPTION")), re.M
    )
    return (
        [long_names().get(flag, flag) for flag in re.findall(r"-[-a-z]+", listed[1])]
        if listed
        else []
    )


def man_exit_codes(page):
    for line in section(page, "EXIT STATUS"):
        if code := re.match(r" {5}([0-9]+(?:, [0-9]+)*|128\+n) +(.*)", line):
            yield f"{code[1]}: {code[2]}"


def man_commands(page):
    for line in section(page, "COMMANDS"):
        if command := re.match(r" {5}([a-z]+)(?: {2}.*| SHELL|$)", line):
            yield command[1]


def man_rights(page):
    lines = "\n".join(section(page, "ACCESS RIGHTS"))
    rights = re.search(r"ACL SETUSER.*?(?:\n\n|\Z)", lines, re.S)
    return re.findall(r"\+([a-z]+)", rights[0]) if rights else []


def pages(tree):
    """The file of each page, by how it is referred to: `redlock-cli 1`."""
    return {
        re.sub(r"\.([1-8])$", r" \1", os.path.basename(file)): file
        for file in tree.glob("man/*.[1-8]")
    }


def check_form(tree, problems):
    """Each page, for itself and with those that it refers to."""
    known = pages(tree)
    for file in known.values():
        page = tree.text(file)
        if lint(page):
            problems.append(f"{file}: {lint(page)}")
        # Quotes within parentheses on one line of a macro are shown as one inside the other.
        if broken := re.findall("‘[^’\n]*‘[^’\n]*|’’", shown(page, "utf8")):
            problems.append(f"{file}: quotes within quotes: {'; '.join(broken)}")
        lines = shown(page, "utf8", 80).splitlines()
        if wide := [line.strip() for line in lines if len(line) > 80]:
            problems.append(f"{file}: wider than 80 columns: {'; '.join(wide)}")
        for name in re.findall(r"^\.(?:Xr|Pq see Xr) (redlock-cli\S* [0-9])", page, re.M):
            if name not in known:
                problems.append(f"{file}: there is no page {name}")
        for title in re.findall(r"^\.Sx (.*?)(?: [.,:;)]+)?$", page, re.M):
            if title not in titles(page):
                problems.append(f"{file}: there is no section {title}")
        for title, name in re.findall(r"^\.Em (.*)\nin\n\.Xr (redlock-cli\S* [0-9])", page, re.M):
            if name in known and title not in titles(tree.text(known[name])):
                problems.append(f"{file}: {name} has no section {title}")
    for document in [
        "README.md",
        "SECURITY.md",
        "CONTRIBUTING.md",
        "ARCHITECTURE.md",
        *tree.glob("docs/*.md"),
        *tree.glob("docs/recipes/*.md"),
    ]:
        for name, number in re.findall(
            r"(?<![\w/.-])(redlock-cli[a-z.-]*)\(([0-9])\)", tree.text(document)
        ):
            if f"{name} {number}" not in known:
                problems.append(f"{document}: there is no page {name}({number})")
    for question in re.findall(r"^\.Dq (.*\?)", tree.text("man/redlock-cli.7"), re.M):
        if f"## {question}" not in tree.text("docs/faq.md").splitlines():
            problems.append(f"man/redlock-cli.7: docs/faq.md does not ask {question}")
    screen = shown(tree.text(OVERVIEW), "ascii", 80).splitlines()[:24]
    if "EXAMPLES" not in screen or not any("redlock-cli run -k deploy" in line for line in screen):
        problems.append(f"{OVERVIEW}: no example on the first screen")


def check_settings(tree, problems):
    """The list of settings, and that of what no file can set."""
    page = tree.text(SETTINGS)
    told = dict(man_settings(page))
    problems.same(f"{SETTINGS}: settings", file_options(), told)
    for name in set(file_options()) & told.keys():
        default = settings()[name]
        if default is not None and told[name] is None:
            problems.append(f"{SETTINGS}: {name}: missing: Default: {default}.")
        elif default != told[name]:
            problems.append(f"{SETTINGS}: {name}: the default is {default}, not {told[name]}")
    title = "On the command line or in a variable, not in a file"
    in_no_file = {f"--{name}" for name in set(settings()) - set(file_options())}
    problems.same(f"{SETTINGS}: {title}", in_no_file, man_listed(page, title))


def check_manual(tree, problems):
    overview = tree.text(OVERVIEW)
    problems.same(f"{OVERVIEW}: commands", commands(), man_commands(overview))
    problems.same(f"{OVERVIEW}: options without a command", help_options(), man_options(overview))
    count = 0
    for command in commands():
        options = help_options(command)
        if options == ["-h,--help", "--help-all"]:  # none of its own
            continue
        file = PAGE_OF[command]
        page = tree.text(file)
        problems.same(
            f"{file}: options of {command}",
            options,
            man_options(overview, command) + man_options(page, command),
        )
        told = [*man_defaults(overview, command), *man_defaults(page, command)]
        for name, default in help_defaults(command):
            count += 1
            if f"none for {command}" in default:
                continue
            # Behind a semicolon stands what holds for other commands.
            defaults = {f"Default: {text}." for text in [default, default.partition("; ")[0]]}
            if not any(f"{name} " in line and text in line for line in told for text in defaults):
                problems.append(f"{file}: {command}: {name}: missing: Default: {default}.")
    if count <= 40:
        problems.append(f"--help: {count} defaults")

    codes = list(man_exit_codes(overview))
    problems.same(
        f"{OVERVIEW}: EXIT STATUS",
        help_exit_codes(),
        [code for code in codes if not code.startswith("128+n: ")],
    )
    if not any(code.startswith("128+n: ") for code in codes):
        problems.append(f"{OVERVIEW}: EXIT STATUS: 128+n is missing")

    # The rights of an ACL user: the commands that the scripts call, those that carry the scripts,
    # that by which a waiter subscribes, and that which tells a replica.
    scripts = "".join(tree.text(script) for script in tree.glob("src/store/scripts/*.lua"))
    called = [name.lower() for name in re.findall(r"redis\.p?call\('([A-Z]+)'", scripts)]
    problems.same(
        f"{SERVERS}: rights",
        called and [*called, "eval", "evalsha", "subscribe", "role"],
        man_rights(tree.text(SERVERS)),
    )


def names_in(schema):
    """Of the fields, and the words that they may have as values."""
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
        values = [schema.get("const"), *schema.get("enum", [])]
        yield from (value for value in values if isinstance(value, str))
    parts = schema.values() if isinstance(schema, dict) else schema
    for part in parts:
        if isinstance(part, (dict, list)):
            yield from names_in(part)


def check_output(tree, problems):
    text = shown(tree.text(OUTPUT), "ascii")
    names = set(names_in(json.loads(tree.text(SCHEMA))))
    problems.same(
        f"{OUTPUT}: fields and values of {SCHEMA}",
        names,
        [name for name in names if re.search(rf"(?<![\w-]){name}(?![\w-])", text)],
    )


# --- The rest. ---


def check_readme(tree, problems):
    readme = tree.text("README.md")
    section = re.search(r"^## Exit codes\n(.*?)^## ", readme, re.M | re.S)
    named = re.findall(r"\b([0-9]+) (\w+(?: \w+)?)", section[1]) if section else []
    # 126 and 127 stand together in both, and mean what they mean in a shell.
    ours = dict(re.findall(r"^([1-9][0-9]*): (.*)", "\n".join(help_exit_codes()), re.M))
    problems.same("README.md: exit codes", ours, [code for code, _ in named if code != "126"])
    problems += [
        f"README.md: exit code {code} is not {word!r} but {ours[code]!r}"
        for code, word in named
        if code in ours and not ours[code].startswith(word)
    ]
    for command in ["./packaging/quickstart.sh", "./tests/run.sh"]:
        if command not in readme.splitlines():
            problems.append(f"README.md: the command {command} is missing")
        if not os.access(tree.path(command), os.X_OK):
            problems.append(f"README.md: {command} is no program")


def check_version(tree, problems):
    version = re.search(r"^project\(.* VERSION ([0-9.]+)", tree.text("CMakeLists.txt"), re.M)
    version = version[1] if version else "none"
    said = output_of(CLI, "--version").partition("\n")[0]
    if said != f"redlock-cli {version}":
        problems.append(f"CMakeLists.txt has version {version}, --version says {said}")
    for file in pages(tree).values():
        if f".Os redlock-cli {version}" not in tree.text(file).splitlines():
            problems.append(f"{file}: no footer .Os redlock-cli {version}")
    for file in ["README.md", "docs/recipes/ci.md"]:
        named = re.findall(
            r"redlock-cli(?:[-_]|@v|:v|/releases/download/v)([0-9]+\.[0-9]+\.[0-9]+)", tree.text(file)
        )
        if not named or set(named) != {version}:
            problems.append(f"{file}: names the versions {sorted(set(named))}")


def check_address(tree, problems):
    """Wherever the project's address stands, it is that of CMakeLists.txt."""
    found = re.search(r"HOMEPAGE_URL https://github\.com/([^/ \n]+/[^/ \n]+)", tree.text("CMakeLists.txt"))
    if not found:
        problems.append("CMakeLists.txt: no HOMEPAGE_URL at GitHub")
        return
    files = subprocess.run(
        ["grep", "-rlI", "--exclude-dir=build", "--exclude-dir=.git", "redlock-cli", "."],
        cwd=tree.root,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    mention = r"(?:uses: |github\.com/|ghcr\.io/)([A-Za-z0-9-]+/redlock-cli)\b"
    mentions = 0
    for file in files:
        for address in re.findall(mention, tree.text(file)):
            mentions += 1
            if address != found[1]:
                problems.append(f"{file}: the project is at {found[1]}, not {address}")
    if mentions < 5:
        problems.append(f"the project's address is mentioned {mentions} times only")


def check_changelog(tree, problems):
    """A section for what is not released, then a dated one for each version; in each, one part of a
    kind."""
    sections = re.split(r"^## (.*)\n", tree.text("CHANGELOG.md"), flags=re.M)[1:]
    titles = sections[::2]
    if titles[:1] != ["[Unreleased]"]:
        problems.append("CHANGELOG.md: does not begin with [Unreleased]")
    problems += [
        f"CHANGELOG.md: {title}: not [X.Y.Z] - YYYY-MM-DD"
        for title in titles[1:]
        if not re.fullmatch(r"\[[0-9]+\.[0-9]+\.[0-9]+\] - [0-9]{4}-[0-9]{2}-[0-9]{2}", title)
    ]
    for title, text in zip(titles, sections[1::2]):
        kinds = re.findall(r"^### (.*)", text, re.M)
        problems += [
            f"CHANGELOG.md: {title}: {kind} twice"
            for kind in sorted(set(kinds))
            if kinds.count(kind) > 1
        ]


def decisions(tree):
    return tree.glob("docs/decisions/*.md")


def anchors(text):
    """Of its headings, as GitHub makes them."""
    return {
        re.sub(r"[^a-z0-9 _-]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"^#+ (.*)", text, re.M)
    }


def links(tree):
    """(document, link) for each within the repository."""
    for document in [*tree.glob("*.md"), *tree.glob("docs/*.md"), *tree.glob("docs/*/*.md")]:
        for link in re.findall(r"\]\(([^) \n]+)\)", tree.text(document)):
            if "://" not in link and not link.startswith("#"):
                yield document, link


def check_links(tree, problems):
    architecture = tree.text("ARCHITECTURE.md")
    problems += [
        f"{file}: ARCHITECTURE.md does not list it"
        for file in decisions(tree)
        if f"({file})" not in architecture
    ]
    for document, link in links(tree):
        file, _, anchor = link.partition("#")
        file = os.path.normpath(os.path.join(os.path.dirname(document), file))
        if not os.path.exists(tree.path(file)) or anchor and anchor not in anchors(tree.text(file)):
            problems.append(f"{document}: there is no {link}")


def check_pictures(tree, problems):
    if tree.text("docs/costs.svg") != chart.drawn(tree.text("docs/performance.md")):
        problems.append("docs/costs.svg: not the times of docs/performance.md: tests/bench/chart.py")
    for document in ["README.md", *tree.glob("docs/*.md")]:
        for picture in re.findall(r"!\[[^]]*\]\(([^)]*)\)", tree.text(document)):
            if "<title>" not in tree.text(os.path.join(os.path.dirname(document), picture)):
                problems.append(f"{document}: {picture} has no title")


def problems_of(tree):
    problems = Problems()
    check_form(tree, problems)
    check_manual(tree, problems)
    check_settings(tree, problems)
    check_output(tree, problems)
    check_readme(tree, problems)
    check_version(tree, problems)
    check_address(tree, problems)
    check_changelog(tree, problems)
    check_links(tree, problems)
    check_pictures(tree, problems)
    return problems


def main():
    for tool in ["mandoc", "groff"]:
        if not shutil.which(tool):
            sys.exit(f"docs: {tool} is not installed")
    tree = Tree(os.path.join(os.path.dirname(__file__), ".."))
    found = problems_of(tree)
    for problem in found:
        print(f"docs: {problem}")
    print(f"docs: {len(pages(tree))} pages, {len(list(links(tree)))} links, {len(found)} problems")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
