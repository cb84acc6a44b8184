#!/usr/bin/python3
"""Fails when a layer under src/ includes what it must not know: the rules are in ALLOWED and
library_rule().

usage: tests/layers.py
"""
import functools
import os
import re
import sys

# The folders there are. A file's layer is its folder.
FOLDERS = (
    "cli commands output engine guard proc store store/redis store/local store/scripts core support"
    .split()
)

# Which layers a layer may include, besides itself.
ALLOWED = {
    "stores.cpp": "store store/redis store/local",
    "find_object.cpp": "",
    "no_libm.cpp": "",
    "cli": "commands output engine guard proc store core support",
    "commands": "output engine guard proc store core support",
    "output": "engine guard proc core support",
    "engine": "store core support",
    "guard": "proc core support",
    "proc": "core support",
    "store/redis": "store core support",
    "store/local": "store core support",
    "store": "core support",
    "core": "support",
    "support": "",
}

OUTSIDE_LAYERS = ["find_object.cpp", "no_libm.cpp", "stores.cpp"]

# Foreign libraries: how their headers begin, and the layers that they are for.
LIBRARIES = [
    (r"CLI/|toml\+\+/", ["cli"], "CLI11 and toml++ are for cli alone"),
    (r"hiredis/|hiredis\.h$", ["store/redis"], "hiredis is for store/redis alone"),
    (r"lua[-0-9.]*/|lua\.h|lualib|lauxlib|luaconf",
     ["store/local"], "Lua is for store/local alone"),
    (r"sha[12]\.h$", ["support"], "libmd is for support alone"),
    (r"openssl/", ["store/redis"], "OpenSSL is for store/redis alone"),
    (r"nlohmann/", ["store", "output"], "nlohmann is for store and output"),
]

DIRECTIVE = re.compile(r'^[ \t]*#[ \t]*(?:include_next|include|import)(?=[ \t<"]|$)[ \t]*(.*)$')


def library_rule(layer, header):
    """The rule that the layer breaks by including this foreign header, or None."""
    for beginning, layers, rule in LIBRARIES:
        if re.match(beginning, header):
            return None if layer in layers else rule
    # Standard headers have no extension and no folder; tl::expected is what support/result.hpp
    # brings.
    if layer == "core" and header != "tl/expected.hpp" and re.search(r"[/.]", header):
        return "core knows the C++ standard library and nothing else"
    return None


@functools.cache
def includes(text):
    """(line number, `"`, `<` or `?`, header) of each include of a text."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        directive = DIRECTIVE.match(line)
        if directive:
            header = re.match(r'"[^"]+"|<[^>]+>', directive[1])
            found.append(
                (number, header[0][0], header[0][1:-1]) if header else (number, "?", directive[1])
            )
    return tuple(found)


def read_tree(root):
    """What lies under src/: the folders, and the text of each source file by its path."""
    folders, files = [], {}
    src = os.path.join(root, "src")
    for path, names, file_names in os.walk(src):
        folders += [os.path.relpath(os.path.join(path, name), src) for name in names]
        for name in file_names:
            if not name.endswith((".txt", ".lua")):
                file = os.path.join(path, name)
                with open(file, encoding="utf-8", errors="replace") as opened:
                    files[os.path.relpath(file, src)] = opened.read()
    return folders, files


def check_include(layer, quote, header):
    """What is wrong with this include in the layer, or None."""
    folder = os.path.dirname(header) or header
    if quote == "?":
        return f'cannot tell what "{header}" includes'
    if quote == '"' or header.split("/")[0] in FOLDERS:
        if folder not in FOLDERS:
            return f'"{header}" is not a path from src/'
        if folder != layer and folder not in ALLOWED.get(layer, "").split():
            return f"{layer} must not include {folder} ({header})"
        return None
    rule = library_rule(layer, header)
    return rule and f"<{header}>: {rule}"


def violations(folders, files):
    """A line for each rule that is broken."""
    found = [
        f"src/{folder}: an unknown folder; tests/layers.py must have a rule for it"
        for folder in folders
        if folder not in FOLDERS
    ]
    if not files:
        found.append("no source files under src/: nothing was checked")
    for file in sorted(files):
        layer = os.path.dirname(file) or file
        if layer == file and file not in OUTSIDE_LAYERS:
            names = ", ".join(OUTSIDE_LAYERS)
            found.append(f"src/{file}: only {names} may lie outside a layer")
        for number, quote, header in includes(files[file]):
            wrong = check_include(layer, quote, header)
            if wrong:
                found.append(f"src/{file}:{number}: {wrong}")
    return found


def main():
    folders, files = read_tree(os.path.join(os.path.dirname(__file__), ".."))
    found = violations(folders, files)
    for line in found:
        print(f"layers: {line}")
    number = sum(len(includes(text)) for text in files.values())
    print(f"layers: {len(files)} files, {number} includes, {len(found)} violations")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
