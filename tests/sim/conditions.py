#!/usr/bin/python3
"""Writes copies of the scripts that report the outcome of each of their conditions.

usage: tests/sim/conditions.py FOLDER SCRIPT…
Writes a copy of each SCRIPT into FOLDER, and a table of all conditions, FOLDER/conditions.json.

A condition decides by itself where a script continues, so it contains no `and` or `or`: it is the
test of `if`, `elseif`, `while` or `until`, or an operand of `and` or `or`. The last operand of a
value is no condition, unless it is a comparison. An expression that cannot be false, such as a
string or a sum, is no condition either. In the copy, `seen(NUMBER, X)` replaces each condition X;
script_copies.cpp defines this function. The condition of a `for` is whether its body runs at all.

Understands the Lua that the scripts use, and refuses everything else.
"""
import collections
import json
import os
import re
import sys

TOKEN = re.compile(
    r"""(?P<space>\s+|--(?!\[=*\[)[^\n]*)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<number>\d+(?:\.\d+)?(?![\w.]))
    |(?P<string>'(?:[^'\\\n]|\\[^\n])*'|"(?:[^"\\\n]|\\[^\n])*")
    |(?P<symbol>\.\.\.|\.\.|==|~=|<=|>=|\[(?!=*\[)|[-+*/%^\#<>=(){}\];,.])""",
    re.VERBOSE,
)
KEYWORDS = set(
    "and break do else elseif end false for function if in local nil not or repeat return then "
    "true until while".split()
)
COMPARISONS = {"==", "~=", "<", ">", "<=", ">="}
ARITHMETIC = {"..", "+", "-", "*", "/", "%", "^"}
# The tokens that end a block; "" is the end of the script.
CLOSING = {"end", "else", "elseif", "until", ""}


class NotUnderstood(Exception):
    """Invalid Lua, or Lua that the scripts do not use. The text says where."""


class Expression:
    """The tokens from `first` to before `after`, and the expressions in them. `kind`: and, or, not,
    group (a parenthesis alone), comparison, constant (never false, or never true), call, value."""

    def __init__(self, kind, first, after, parts=()):
        self.kind = kind
        self.first = first
        self.after = after
        self.parts = parts

    def inner(self):
        """The expression without parentheses."""
        return self.parts[0].inner() if self.kind == "group" else self


class Instrumented:
    """A script: `text` is its copy, and `conditions` lists its conditions in the order of their
    numbers, which begin with `first_number`."""

    def __init__(self, name, original, first_number=0):
        self.name = name
        self.original = original
        self.first_number = first_number
        self.conditions = []
        self.names = collections.Counter()  # how often each occurs; the second is `#2`
        self.insertions = []  # (position, text)
        self.functions = []  # the functions around the current token
        self.tokens = list(self.read_tokens())
        self.at = 0
        self.block()
        if self.peek():
            self.fail(f"'{self.peek()}' closes nothing")
        self.text = self.with_insertions()

    # --- tokens ---

    def read_tokens(self):
        """(kind, text, start, end) of each token; the last one is empty."""
        position = 0
        while position < len(self.original):
            match = TOKEN.match(self.original, position)
            if not match:
                self.fail(repr(self.original[position : position + 10]), position)
            if match.lastgroup != "space":
                is_keyword = match.group() in KEYWORDS
                kind = "keyword" if is_keyword else match.lastgroup
                yield kind, match.group(), match.start(), match.end()
            position = match.end()
        yield "end", "", position, position

    def line_of(self, position):
        return self.original.count("\n", 0, position) + 1

    def fail(self, what, position=None):
        if position is None:
            position = self.start_of(self.at)
        raise NotUnderstood(f"{self.name}:{self.line_of(position)}: not understood: {what}")

    def peek(self):
        return self.tokens[self.at][1]

    def kind(self):
        return self.tokens[self.at][0]

    def take(self, expected):
        if not self.take_if(expected):
            self.fail(f"'{self.peek()}' instead of '{expected}'")

    def take_if(self, text):
        found = self.peek() == text
        self.at += found
        return found

    def take_name(self):
        if self.kind() != "name":
            self.fail(f"'{self.peek()}' instead of a name")
        self.at += 1
        return self.tokens[self.at - 1][1]

    def take_names(self):
        self.take_name()
        while self.take_if(","):
            self.take_name()

    def start_of(self, token):
        return self.tokens[token][2]

    def end_before(self, token):
        return self.tokens[token - 1][3]

    # --- statements ---

    def block(self):
        while self.peek() not in CLOSING:
            is_last = self.peek() in ("return", "break")
            self.statement()
            self.take_if(";")
            if is_last and self.peek() not in CLOSING:
                self.fail(f"'{self.peek()}' after the end of a block")

    def statement(self):
        if self.take_if("if"):
            self.if_statement()
        elif self.take_if("while"):
            self.condition()
            self.body()
        elif self.take_if("repeat"):
            self.block()
            self.take("until")
            self.condition()
        elif self.take_if("for"):
            self.for_statement()
        elif self.peek() == "do":
            self.body()
        elif self.take_if("local"):
            self.local_statement()
        elif self.take_if("return"):
            if self.peek() not in CLOSING | {";"}:
                self.values()
        elif not self.take_if("break"):
            self.assignment_or_call()

    def body(self):
        self.take("do")
        self.block()
        self.take("end")

    def if_statement(self):
        self.condition()
        self.take("then")
        self.block()
        while self.take_if("elseif"):
            self.condition()
            self.take("then")
            self.block()
        if self.take_if("else"):
            self.block()
        self.take("end")

    def for_statement(self):
        first = self.at - 1
        self.take_names()
        if not self.take_if("="):
            self.take("in")
        self.values()
        number = self.add_condition(first, self.at)
        self.insert(self.start_of(first), f"do local runs_{number} ")
        self.insert(self.start_of(self.at) + len("do"), f" runs_{number} = seen({number}, true)")
        self.body()
        self.insert(self.end_before(self.at), f" seen({number}, runs_{number}) end")

    def local_statement(self):
        if self.take_if("function"):
            self.function_body(self.take_name())
            return
        self.take_names()
        if self.take_if("="):
            self.values()

    def function_body(self, name):
        self.take("(")
        if not self.take_if(")"):
            while not self.take_if("..."):
                self.take_name()
                if not self.take_if(","):
                    break
            self.take(")")
        self.functions.append(name)
        self.block()
        self.functions.pop()
        self.take("end")

    def assignment_or_call(self):
        target = self.suffixed()
        self.mark(target)
        if target.kind == "call":
            return
        while self.take_if(","):
            self.mark(self.suffixed())
        self.take("=")
        self.values()

    # --- expressions ---

    def condition(self):
        self.mark(self.expression(), decides=True)

    def values(self):
        for value in self.list_of_expressions():
            self.mark(value)

    def list_of_expressions(self):
        found = [self.expression()]
        while self.take_if(","):
            found.append(self.expression())
        return found

    def expression(self):
        return self.chain("or", lambda: self.chain("and", self.comparison))

    def chain(self, operator, operand):
        first = self.at
        operands = [operand()]
        while self.take_if(operator):
            operands.append(operand())
        return self.several(operator, first, operands)

    def comparison(self):
        return self.operation(COMPARISONS, self.arithmetic, "comparison")

    def arithmetic(self):
        return self.operation(ARITHMETIC, self.unary, "constant")

    def operation(self, operators, operand, kind):
        first = self.at
        operands = [operand()]
        while self.peek() in operators:
            self.at += 1
            operands.append(operand())
        return self.several(kind, first, operands)

    def several(self, kind, first, operands):
        return operands[0] if len(operands) == 1 else Expression(kind, first, self.at, operands)

    def unary(self):
        first = self.at
        if self.take_if("not"):
            operand = self.unary()
            return Expression("not", first, self.at, [operand])
        if self.take_if("-") or self.take_if("#"):
            operand = self.unary()
            return Expression("constant", first, self.at, [operand])
        return self.simple()

    def simple(self):
        first = self.at
        if self.kind() in ("number", "string") or self.peek() in ("true", "false", "nil"):
            self.at += 1
        elif self.take_if("function"):
            self.function_body("function")
        elif self.take_if("{"):
            fields = self.fields()
            return Expression("constant", first, self.at, fields)
        elif self.take_if("..."):
            return Expression("value", first, self.at)
        else:
            return self.suffixed()
        return Expression("constant", first, self.at)

    def suffixed(self):
        """A name or a parenthesis, with its suffixes."""
        first = self.at
        kind = "value"
        parts = []
        if self.take_if("("):
            kind = "group"
            parts.append(self.expression())
            self.take(")")
        else:
            self.take_name()
        while True:
            if self.take_if("."):
                kind = "value"
                self.take_name()
            elif self.take_if("["):
                kind = "value"
                parts.append(self.expression())
                self.take("]")
            elif self.take_if("("):
                kind = "call"
                if not self.take_if(")"):
                    parts += self.list_of_expressions()
                    self.take(")")
            elif self.kind() == "string" or self.peek() == "{":
                self.fail(f"a call without parentheses: {self.peek()}")
            else:
                break
        # The build replaces these with a string or a number.
        if self.tokens[first][1] in ("WORD", "NUMBER"):
            kind = "constant"
        return Expression(kind, first, self.at, parts)

    def fields(self):
        """Reads the rest of a table. -> the expressions in it"""
        found = []
        while not self.take_if("}"):
            if self.take_if("["):
                found.append(self.expression())
                self.take("]")
                self.take("=")
            elif self.kind() == "name" and self.tokens[self.at + 1][1] == "=":
                self.at += 2
            found.append(self.expression())
            if not self.take_if(",") and self.peek() != "}":
                self.fail(f"'{self.peek()}' in a table")
        return found

    # --- conditions ---

    def mark(self, expression, decides=False):
        """Wraps each condition in it in `seen`. `decides`: the script branches on its truth."""
        kind, parts = expression.kind, expression.parts
        if kind in ("and", "or"):
            for operand in parts[:-1]:
                self.mark(operand, decides=True)
            compares = parts[-1].inner().kind in ("comparison", "not")
            self.mark(parts[-1], decides or compares)
            return
        if kind == "group":
            self.mark(parts[0], decides)
            return
        if kind == "not" and parts[0].inner().kind in ("and", "or", "not"):
            self.mark(parts[0], decides=True)
            return
        if decides and kind != "constant":
            number = self.add_condition(expression.first, expression.after)
            self.insert(self.start_of(expression.first), f"seen({number}, ")
        for part in parts:
            self.mark(part)
        if decides and kind != "constant":
            self.insert(self.end_before(expression.after), ")")

    def add_condition(self, first, after):
        """-> its number"""
        start = self.start_of(first)
        text = re.sub(r"--[^\n]*", "", self.original[start : self.end_before(after)])
        text = re.sub(r"\s+", " ", text)
        name = " ".join([self.name, *self.functions]) + f": {text}"
        self.names[name] += 1
        same = self.names[name]
        self.conditions.append(
            {
                "name": name if same == 1 else f"{name} #{same}",
                "place": f"src/store/scripts/{self.name}:{self.line_of(start)}",
                "text": text,
            }
        )
        return self.first_number + len(self.conditions) - 1

    def insert(self, position, text):
        self.insertions.append((position, text))

    def with_insertions(self):
        parts = []
        done = 0
        for position, text in sorted(self.insertions, key=lambda insertion: insertion[0]):
            parts += [self.original[done:position], text]
            done = position
        return "".join(parts) + self.original[done:]


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__.split("\n\n")[1])
    folder, *scripts = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    conditions = []
    for path in scripts:
        name = os.path.basename(path)
        with open(path, encoding="utf-8") as script:
            copy = Instrumented(name, script.read(), len(conditions))
        conditions += copy.conditions
        with open(os.path.join(folder, name), "w", encoding="utf-8") as written:
            written.write(copy.text)
    with open(os.path.join(folder, "conditions.json"), "w", encoding="utf-8") as table:
        json.dump(conditions, table, indent=1)


if __name__ == "__main__":
    try:
        main()
    except NotUnderstood as problem:
        sys.exit(f"conditions.py: {problem}")
