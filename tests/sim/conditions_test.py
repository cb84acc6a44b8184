#!/usr/bin/python3
"""Shows that conditions.py finds every condition and refuses Lua that it does not understand, and
that coverage.py reports what was not seen."""
import os
import re
import sys

sys.dont_write_bytecode = True
# Appended, so that `import coverage` finds coverage.py here, not the folder tests/coverage.
sys.path.append(os.path.join(os.path.dirname(__file__), ".."))
import conditions
import coverage
from tree_rules import Checks

checks = Checks("conditions_test")


def count(found, expected, what):
    checks.count(found != expected and f"{what}: {found}, expected {expected}")


def check_copy(original, expected):
    count(conditions.Instrumented("a.lua", original).text, expected, original)


def check_names(original, *expected):
    found = conditions.Instrumented("a.lua", original).conditions
    count([condition["name"] for condition in found], list(expected), original)


def check_refused(original, words):
    try:
        verdict = conditions.Instrumented("a.lua", original).text
    except conditions.NotUnderstood as problem:
        verdict = words if words in str(problem) else str(problem)
    count(verdict, words, original)


# Tests of a branch: each operand by itself, whatever is around it.
check_copy("if a then b() end", "if seen(0, a) then b() end")
check_copy("if not a then b() end", "if seen(0, not a) then b() end")
check_copy("while a == 1 do b() end", "while seen(0, a == 1) do b() end")
check_copy("repeat b() until a.b[1]", "repeat b() until seen(0, a.b[1])")
check_copy(
    "if a then elseif b and (c or not d) then else end",
    "if seen(0, a) then elseif seen(1, b) and (seen(2, c) or seen(3, not d)) then else end",
)
check_copy("if not (a and b) then end", "if not (seen(0, a) and seen(1, b)) then end")
check_copy("if not not a then end", "if not seen(0, not a) then end")
check_copy("if a and f(b or c) then end", "if seen(0, a) and seen(1, f(seen(2, b) or c)) then end")
check_copy("if (a or b).c == d then end", "if seen(0, (seen(1, a) or b).c == d) then end")
check_copy("if -1 < #a .. b then end", "if seen(0, -1 < #a .. b) then end")

# Values: the last operand is a condition only if it is a comparison; a constant never is.
check_copy("local a = b", "local a = b")
check_copy("local a = b == 1", "local a = b == 1")
check_copy("local a = b or c", "local a = seen(0, b) or c")
check_copy("return b and c == 1", "return seen(0, b) and seen(1, c == 1)")
check_copy("a = b and not c", "a = seen(0, b) and seen(1, not c)")
check_copy("a.b = c and 'x' or d", "a.b = seen(0, c) and 'x' or d")
check_copy("a = b and WORD.x or d", "a = seen(0, b) and WORD.x or d")
check_copy("a = b and 1 + c or d", "a = seen(0, b) and 1 + c or d")
check_copy(
    "f({b and c, [b or c] = 1, d = b or c})",
    "f({seen(0, b) and c, [seen(1, b) or c] = 1, d = seen(2, b) or c})",
)
check_copy("while true do break end", "while true do break end")

# Loops: whether they run at all.
check_copy(
    "for a = 1, b do c() end",
    "do local runs_0 for a = 1, b do runs_0 = seen(0, true) c() end seen(0, runs_0) end",
)
check_copy(
    "for a, b in c(d or e) do if a then return end end",
    "do local runs_1 for a, b in c(seen(0, d) or e) do runs_1 = seen(1, true) "
    "if seen(2, a) then return end end seen(1, runs_1) end",
)

# Comments and strings, which are not code.
check_copy("-- if a then\nlocal b = 'and' -- or\n", "-- if a then\nlocal b = 'and' -- or\n")
check_copy("local a = 'it\\'s' .. \"a or b\"", "local a = 'it\\'s' .. \"a or b\"")

# Numbers continue from script to script; lines and names are those of the original.
count(
    conditions.Instrumented("b.lua", "if a then end", 7).text, "if seen(7, a) then end", "number 7"
)
count(
    conditions.Instrumented("a.lua", "\n\nlocal a =\n  b or c").conditions,
    [{"name": "a.lua: b", "place": "src/store/scripts/a.lua:4", "text": "b"}],
    "a place",
)
check_names(
    "local function f(...) local g = function(a, b) return a or b end end if a then end",
    "a.lua f function: a",
    "a.lua: a",
)
check_names("if a then end if a then end", "a.lua: a", "a.lua: a #2")
check_names("if a ~= #b then end if a ~= #b then end", "a.lua: a ~= #b", "a.lua: a ~= #b #2")
check_names("if a(b, -- why\n  c) then end", "a.lua: a(b, c)")
check_names("for a = 1, b do end", "a.lua: for a = 1, b")

# Lua that the scripts do not use, and invalid Lua.
for original, words in {
    "if a then": "1: not understood: '' instead of 'end'",
    "local a = b\nend": "2: not understood: 'end' closes nothing",
    "--[[ a ]]": "not understood: '[[ a ]]'",
    "local a = [[b]]": "not understood: '[[b]]'",
    "local a = 'b\n'": "not understood: \"'b",
    "local a = 0x10": "not understood: '0x10'",
    "a:b()": "not understood: ':b()'",
    "f 'a'": "a call without parentheses: 'a'",
    "f {a}": "a call without parentheses: {",
    "goto a": "'a' instead of '='",
    "return a b()": "'b' after the end of a block",
    "local a = {b c}": "'c' in a table",
    "local a = b ~ c": "not understood: '~ c'",
    "local if = 1": "'if' instead of a name",
    "a + b": "'+' instead of '='",
    "if a or then end": "'then' instead of a name",
}.items():
    check_refused(original, words)

# The report: what was seen, what was not, and whether that matches the list.
TABLE = conditions.Instrumented("a.lua", "if a then for b = 1, c do end end").conditions
ALL = {(0, 0), (0, 1), (1, 0), (1, 1)}


def check_report(seen, listed, problems, is_complete=True):
    """Only counts the lines of what was never seen."""
    lines, summary, found = coverage.judge(TABLE, seen, listed, is_complete)
    count(found, problems, f"{seen}, {listed}")
    count(len(lines), len(ALL - seen), f"{seen}, {listed}: lines {lines}")
    count(summary, f"{len(seen)} of 4 outcomes of conditions in the scripts", "the summary")


UNSEEN = "a.lua: for b = 1, c - never runs"
check_report(ALL, {}, [])
check_report(ALL - {(1, 0)}, {UNSEEN: "why"}, [])
check_report(ALL - {(1, 0)}, {}, [f"never seen, and not listed: {UNSEEN}"])
check_report(ALL, {UNSEEN: "why"}, [f"listed, but seen: {UNSEEN}"])
check_report(ALL, {"a.lua: d - true": "why"}, ["listed, but no outcome: a.lua: d - true"])
check_report({(0, 0)}, {}, [], is_complete=False)
check_report(ALL, {UNSEEN: "why"}, [f"listed, but seen: {UNSEEN}"], is_complete=False)
check_report(set(), {}, ["no condition was seen"], is_complete=False)

# A simulation that writes nothing.
count(
    coverage.run("false", "promise", 1, 2, "/nowhere"),
    (set(), "seeds 1-2 of promise: exit status 1, and no outcomes: "),
    "a simulation that fails",
)

LIST = """# a comment
why: one
  reason
a.lua: a - true
a.lua: a - false

why: two
b.lua: b - true
"""
count(
    coverage.read_unseen(LIST),
    {"a.lua: a - true": "one reason", "a.lua: a - false": "one reason", "b.lua: b - true": "two"},
    "a list",
)
for text, words in {
    "a.lua: a - true\n": "line 1: no reason",
    "why: one\na.lua: a - true\na.lua: a - true\n": "line 3: listed twice",
}.items():
    try:
        verdict = coverage.read_unseen(text)
    except coverage.BadList as problem:
        verdict = words if words in str(problem) else str(problem)
    count(verdict, words, text)

# Each test that the list names exists.
FOLDER = os.path.dirname(os.path.abspath(__file__))
with open(coverage.UNSEEN, encoding="utf-8") as unseen:
    reasons = set(coverage.read_unseen(unseen.read()).values())
with open(os.path.join(FOLDER, "../unit/store/scripts_test.cpp"), encoding="utf-8") as tests:
    known = {".".join(name) for name in re.findall(r"TEST_F\((\w+), (\w+)\)", tests.read())}
named = {name for why in reasons for name in re.findall(r"\w+Test\.\w+", why)}
count(sorted(named - known), [], "tests that are named and do not exist")
count(bool(named), True, "tests are named")

checks.exit()
