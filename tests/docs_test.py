#!/usr/bin/python3
"""Shows that tests/docs.py finds what it is there to find: changes what it has read of the
documents, one thing at a time.

usage: REDLOCK_CLI=build/dev/src/redlock-cli tests/docs_test.py
"""
import re
import sys

sys.dont_write_bytecode = True
import docs
from tree_rules import ROOT, Checks

OVERVIEW = docs.OVERVIEW
RUN = docs.PAGE_OF["run"]
ACQUIRE = docs.PAGE_OF["acquire"]
STATUS = docs.PAGE_OF["status"]
CONCEPTS = docs.CONCEPTS
SETTINGS = docs.SETTINGS
COMPLETION = docs.COMPLETION

checks = Checks("docs_test")

if docs.problems_of(docs.Tree(ROOT)):
    sys.exit("docs_test: tests/docs.py finds problems already; mend those first")


def missed(file, pattern, replacement, words, count):
    """What is wrong with what is said of a change, or None."""
    text = docs.Tree(ROOT).text(file)
    changed = re.sub(pattern, replacement, text, count=count, flags=re.M)
    if changed == text:
        return f"{file}: {pattern} changes nothing"
    problems = docs.problems_of(docs.Tree(ROOT, {file: changed}))
    # For this, and for nothing else.
    if not all(any(word in problem for problem in problems) for word in words) or not all(
        any(word in problem for word in words) for problem in problems
    ):
        return f"{file}: {pattern}: expected {words}, found {problems}"
    return None


def plant(file, pattern, replacement, *words, count=0):
    """A change that must be found: in what is said of it each of WORDS is a line's, and each line
    has one of them. One that changes nothing is a mistake of this test."""
    checks.count(missed(file, pattern, replacement, words, count))


plant(
    RUN,
    r"^\.It Fl -grace Ar DUR\n",
    "",
    f"{RUN}: options of run: missing: --grace DUR",
    f"{RUN}: run: --grace: missing: Default: ",
)
plant(
    ACQUIRE,
    r"^\.It Fl -grace Ar DUR\n",
    "",
    f"{ACQUIRE}: options of acquire: missing: --grace DUR",
    f"{ACQUIRE}: acquire: --grace: missing: Default: ",
)
plant(
    STATUS,
    r"^\.It Fl -watch Op Ar DUR$",
    r"\g<0>\n.It Fl -planted",
    f"{STATUS}: options of status: unknown to the program: --planted",
)
plant(
    ACQUIRE,
    r"^\.Ss Options of release$",
    ".Ss Options of extend",
    f"{ACQUIRE}: options of release: missing: --force",
    f"{ACQUIRE}: options of extend: unknown to the program: --force",
)
plant(
    RUN,
    r" , Fl -timeout Ar DUR",
    " Ar DUR",
    f"{RUN}: options of run: missing: -w,--wait,--timeout DUR",
    f"{RUN}: options of run: unknown to the program: -w,--wait DUR",
)
plant(
    ACQUIRE,
    r"^(\.It Fl -if-fence) Ar N",
    r"\1 Ar M",
    f"{ACQUIRE}: options of release: missing: --if-fence N",
    f"{ACQUIRE}: options of release: unknown to the program: --if-fence M",
)
plant(
    OVERVIEW,
    r" , Fl -version$",
    "",
    f"{OVERVIEW}: options without a command: missing: -V,--version",
    f"{OVERVIEW}: options without a command: unknown to the program: -V",
)
plant(
    OVERVIEW,
    r"^\.It Fl -sni Ar NAME$",
    ".It Fl -sni Ar HOST",
    *[
        f"{page}: options of {command}: {what}: --sni"
        for command, page in docs.PAGE_OF.items()
        for what in ["missing", "unknown to the program"]
    ],
)
plant(
    OVERVIEW,
    r"^\.It Cm status$",
    ".It Cm stat",
    f"{OVERVIEW}: commands: missing: status",
    f"{OVERVIEW}: commands: unknown to the program: stat",
)
plant(OVERVIEW, r"^\.It 79\n.*\n", "", f"{OVERVIEW}: EXIT CODES: missing: 79")
plant(
    OVERVIEW,
    r"^denied: login, rights, or TLS verification$",
    "denied: login",
    f"{OVERVIEW}: EXIT CODES: missing: 77",
    f"{OVERVIEW}: EXIT CODES: unknown to the program: 77: denied: login",
)
plant(
    OVERVIEW,
    r"^\.It 77$",
    r".It 80\nunconfirmed\n\g<0>",
    f"{OVERVIEW}: EXIT CODES: unknown to the program: 80",
)
plant(OVERVIEW, r"^\.It 128\+n\n.*\n", "", f"{OVERVIEW}: EXIT CODES: 128+n is missing")
plant(OVERVIEW, r"^\.Sh EXAMPLES$", ".Sh COURSES", f"{OVERVIEW}: no example on the first screen")
plant(OVERVIEW, r"^\.Sh SEE ALSO$", r".Planted\n\g<0>", f"{OVERVIEW}: mandoc: ")
plant(RUN, r"^\.Sh NOTES$", r"\g<0>\n.Pq Ql one , Ql two", f"{RUN}: quotes within quotes")
plant(
    RUN,
    r"^Default: 10s\.$",
    "Default: 11s.",
    f"{RUN}: run: --unavailable-wait: missing: Default: 10s.",
)
plant(
    RUN,
    r"^\.Xr redlock-cli 1 ,$",
    ".Xr redlock-cli 2 ,",
    f"{RUN}: there is no page redlock-cli 2",
    count=1,
)
plant(RUN, r"^\.Sx ISOLATION", ".Sx ISOLATED", f"{RUN}: there is no section ISOLATED")
plant(CONCEPTS, r"^\.Sh THE QUEUE$", ".Sh QUEUES", f"{RUN}: redlock-cli 7 has no section THE QUEUE")
plant(CONCEPTS, r" \+pttl ", " ", f"{CONCEPTS}: rights: missing: pttl")
plant(
    SETTINGS,
    r"^\.It Li replicas$",
    ".It Li replica",
    f"{SETTINGS}: settings: missing: replicas",
    f"{SETTINGS}: settings: unknown to the program: replica",
)
plant(
    SETTINGS,
    r"^Default: TERM\.$",
    "Default: INT.",
    f"{SETTINGS}: stop-signal: the default is TERM, not INT",
)
plant(
    SETTINGS,
    r"^\.Fl -supersede ,\n",
    "",
    f"{SETTINGS}: On the command line alone: missing: --supersede",
)
plant(
    SETTINGS,
    r"^\.Fl -supersede ,\n",
    r"\g<0>.Fl -ttl ,\n",
    f"{SETTINGS}: On the command line alone: unknown to the program: --ttl",
)
plant(
    SETTINGS,
    r"^\.Fl -status-fd \.$",
    ".Fl -events-fd .",
    f"{SETTINGS}: On the command line or in a variable, not in a file: missing: --status-fd",
    f"{SETTINGS}: On the command line or in a variable, not in a file: "
    "unknown to the program: --events-fd",
)
plant(
    "src/store/scripts/inspect.lua",
    r"\Z",
    "redis.call('PLANTED', LOCK)\n",
    f"{CONCEPTS}: rights: missing: planted",
)

plant(
    COMPLETION,
    r"^  case \$kind in$",
    r'  words=("${words[@]/--status-fd/}")\n\g<0>',
    f"{COMPLETION}: options of run: missing: --status-fd",
)
plant(
    COMPLETION,
    r"^  case \$kind in$",
    r"  words+=(--planted)\n\g<0>",
    f"{COMPLETION}: options of run: unknown to the program: --planted",
    ": unknown to the program: --planted",
)
plant(
    COMPLETION,
    r"^    words\)",
    "    nothing)",
    f"{COMPLETION}: commands: missing: acquire",
    f"{COMPLETION}: ",
)
plant(
    COMPLETION,
    r'completion suggest "\$\{typed',
    r'\g<0>[@]:1:1}" "${typed',
    f"{COMPLETION}: --on-lost: missing: kill",
    f"{COMPLETION}: ",
)
plant(
    COMPLETION,
    r"^      _redlock_cli_offer_command .*",
    "      _redlock_cli_offer --key mandoc",
    f"{COMPLETION}: run -k a: options are offered behind the command",
    ": options are offered behind the command",
)
plant(
    COMPLETION,
    r"^      _redlock_cli_offer_command .*",
    "",
    f"{COMPLETION}: run -k a: no command is offered",
    ": no command is offered",
)

plant(
    "README.md",
    r" 79 lost",
    " 99 lost",
    "README.md: exit codes: missing: 79",
    "README.md: exit codes: unknown to the program: 99",
)
plant(
    "README.md",
    r" 75 busy",
    " 75 lost",
    "README.md: exit code 75 is not 'lost' but 'busy: another process held the lock until the wait "
    "ended (-E replaces it)'",
)
plant("README.md", r"^\./tests/run\.sh\n", "", "README.md: the command ./tests/run.sh is missing")
plant(
    "README.md",
    r"redlock-cli\.toml\(5\)",
    "redlock-cli.toml(4)",
    "README.md: there is no page redlock-cli.toml(4)",
)
plant(
    "SECURITY.md",
    r"#the-promise\)",
    "#the-promises)",
    "SECURITY.md: there is no docs/guarantees.md#the-promises",
)
plant("README.md", r"\]\(LICENSE\)", "](PLANTED)", "README.md: there is no PLANTED")
plant(
    "CMakeLists.txt", r" VERSION [0-9.]+ ", " VERSION 99.0.0 ", "CMakeLists.txt has version 99.0.0"
)
plant("CHANGELOG.md", r"^Servers:$", "### Added", "CHANGELOG.md: [0.1.0] - 2026-11-24: Added twice")
plant(
    "CHANGELOG.md",
    r"^## \[Unreleased\]$",
    "## [0.1.0]",
    "CHANGELOG.md: does not begin with [Unreleased]",
)
plant("CHANGELOG.md", r"^Servers:$", "## [0.0.1]", "CHANGELOG.md: [0.0.1]: not [X.Y.Z]")
plant(
    "ARCHITECTURE.md",
    r"\(docs/decisions/0001-[^)]*\)",
    "()",
    "docs/decisions/0001-eval-first-on-a-connection.md: ARCHITECTURE.md does not list it",
)

checks.exit()
