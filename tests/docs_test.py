#!/usr/bin/python3
"""Shows that tests/docs.py finds what it is there to find: changes what it has read of the documents, one thing at a time.

usage: REDLOCK_CLI=build/dev/src/redlock-cli tests/docs_test.py
"""
import re
import sys

sys.dont_write_bytecode = True
import docs
from tree_rules import ROOT, Checks

PAGE = docs.PAGE
COMPLETION = docs.COMPLETION

checks = Checks("docs_test")


def missed(file, pattern, replacement, words, count):
    """What is wrong with what is said of a change, or None."""
    text = docs.Tree(ROOT).text(file)
    changed = re.sub(pattern, replacement, text, count=count, flags=re.M)
    if changed == text:
        return f"{file}: {pattern} changes nothing"
    problems = docs.problems_of(docs.Tree(ROOT, {file: changed}))
    # For this, and for nothing else.
    if not all(any(word in problem for problem in problems) for word in words) or \
            not all(any(word in problem for word in words) for problem in problems):
        return f"{file}: {pattern}: expected {words}, found {problems}"
    return None


def plant(file, pattern, replacement, *words, count=0):
    """A change that must be found: in what is said of it each of WORDS is a line's, and each line has one of them. One that changes nothing
    is a mistake of this test."""
    checks.count(missed(file, pattern, replacement, words, count))


plant(PAGE, r"^\.It Fl -grace Ar DUR\n", "", f"{PAGE}: options of run: missing: --grace DUR",
      f"{PAGE}: options of acquire: missing: --grace DUR", f"{PAGE}: --grace: missing: Default: ")
plant(PAGE, r"^\.It Fl -watch Op Ar DUR$", r"\g<0>\n.It Fl -planted", f"{PAGE}: options of status: unknown to the program: --planted")
plant(PAGE, r"^\.Ss Options of release$", ".Ss Options of extend", f"{PAGE}: options of release: missing: --force",
      f"{PAGE}: options of extend: unknown to the program: --force")
plant(PAGE, r" , Fl -timeout Ar DUR", " Ar DUR", f"{PAGE}: options of run: missing: -w,--wait,--timeout DUR",
      f"{PAGE}: options of run: unknown to the program: -w,--wait DUR", f"{PAGE}: options of acquire: ")
plant(PAGE, r"^(\.It Fl -if-fence) Ar N", r"\1 Ar M", f"{PAGE}: options of release: missing: --if-fence N",
      f"{PAGE}: options of release: unknown to the program: --if-fence M")
plant(PAGE, r" , Fl -version$", "", f"{PAGE}: options without a command: missing: -V,--version",
      f"{PAGE}: options without a command: unknown to the program: -V")
plant(PAGE, r"^\.It Cm status$", ".It Cm stat", f"{PAGE}: commands: missing: status", f"{PAGE}: commands: unknown to the program: stat")
plant(PAGE, r"^\.Fl -reason ,\n", "", f"{PAGE}: On the command line alone: missing: --reason")
plant(PAGE, r"^\.Fl -detach ,\n", r"\g<0>.Fl -note ,\n", f"{PAGE}: On the command line alone: unknown to the program: --note")
plant(PAGE, r"^(\.Fl -config\nand\n)\.Fl -status-fd ", r"\1.Fl -events-fd ",
      f"{PAGE}: On the command line or in a variable, not in a file: missing: --status-fd",
      f"{PAGE}: On the command line or in a variable, not in a file: unknown to the program: --events-fd")
plant(PAGE, r"^\.It 79\n.*\n", "", f"{PAGE}: EXIT STATUS: missing: 79")
plant(PAGE, r"^denied: login, rights, or TLS verification$", "denied: login", f"{PAGE}: EXIT STATUS: missing: 77",
      f"{PAGE}: EXIT STATUS: unknown to the program: 77: denied: login")
plant(PAGE, r"^\.It 77$", r".It 80\nunconfirmed\n\g<0>", f"{PAGE}: EXIT STATUS: unknown to the program: 80")
plant(PAGE, r"^\.It 128\+n\n.*\n", "", f"{PAGE}: EXIT STATUS: 128+n is missing")
plant(PAGE, r" \+pttl ", " ", f"{PAGE}: rights: missing: pttl")
plant(PAGE, r"^\.Sh NOTES$", r"\g<0>\n.Planted", f"{PAGE}: mandoc: {PAGE}:")
plant(PAGE, r"^\.Sh NOTES$", r"\g<0>\n.Pq Ql one , Ql two", f"{PAGE}: quotes within quotes")
plant(PAGE, r"^Default: 10s\.$", "Default: 11s.", f"{PAGE}: --unavailable-wait: missing: Default: 10s.")
plant("src/store/scripts/inspect.lua", r"\Z", "redis.call('PLANTED', LOCK)\n", f"{PAGE}: rights: missing: planted")

plant(COMPLETION, r"^  case \$kind in$", r'  words=("${words[@]/--status-fd/}")\n\g<0>', f"{COMPLETION}: options of run: missing: --status-fd")
plant(COMPLETION, r"^  case \$kind in$", r"  words+=(--planted)\n\g<0>", f"{COMPLETION}: options of run: unknown to the program: --planted", ": unknown to the program: --planted")
plant(COMPLETION, r"^    words\)", "    nothing)", f"{COMPLETION}: commands: missing: acquire", f"{COMPLETION}: ")
plant(COMPLETION, r'completion suggest "\$\{typed', r'\g<0>[@]:1:1}" "${typed', f"{COMPLETION}: --on-lost: missing: kill", f"{COMPLETION}: ")
plant(COMPLETION, r"^      _redlock_cli_offer_command .*", "      _redlock_cli_offer --key mandoc", f"{COMPLETION}: run -k a: options are offered behind the command", ": options are offered behind the command")
plant(COMPLETION, r"^      _redlock_cli_offer_command .*", "", f"{COMPLETION}: run -k a: no command is offered", ": no command is offered")

plant("README.md", r"^\| 79 \|", "| 99 |", "README.md: exit codes: missing: 79", "README.md: exit codes: unknown to the program: 99")
plant("README.md", r"^\./tests/run\.sh\n", "", "README.md: the command ./tests/run.sh is missing")
plant("README.md", r"\]\(LICENSE\)", "](PLANTED)", "README.md: there is no PLANTED")
plant("CMakeLists.txt", r" VERSION [0-9.]+ ", " VERSION 99.0.0 ", "CMakeLists.txt has version 99.0.0")
plant("ARCHITECTURE.md", r"\(docs/decisions/0001-[^)]*\)", "()",
      "docs/decisions/0001-eval-first-on-a-connection.md: ARCHITECTURE.md does not list it")

checks.exit()
