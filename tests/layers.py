#!/usr/bin/python3
"""Fails when a layer under src/ includes what it must not know, or ARCHITECTURE.md shows other rules
than LAYERS.

usage: tests/layers.py           checks both
       tests/layers.py --draw    writes LAYERS into ARCHITECTURE.md
"""
import functools
import os
import re
import sys

# Each folder is a layer, and so is each file outside of them: what is there, the layers that it may
# include besides itself, all of them further down, and the foreign libraries that only it may use.
LAYERS = {
    "stores.cpp": ("the list of stores", "store/redis store/local store", ""),
    "cli": (
        "words → options → exit status",
        "commands output engine guard proc store core support",
        "CLI11 toml++",
    ),
    "commands": (
        "what each command does: the holder processes, a run's state",
        "output engine guard proc store core support",
        "",
    ),
    "output": (
        "all that is shown: messages, events, the status line, status, JSON",
        "engine guard proc core support",
        "nlohmann-json",
    ),
    "engine": ("attempts, the wait, leases that are kept", "store core support", ""),
    "guard": (
        "front process, supervisor, watchdog, process tree, job control, signals",
        "proc core support",
        "",
    ),
    "proc": (
        "how the kernel sees processes: /proc, titles, cgroups, descriptors",
        "core support",
        "",
    ),
    "store/redis": ("RESP, Sentinel, Cluster, TLS", "store core support", "hiredis OpenSSL"),
    "store/local": ("the same scripts on a file for each lock", "store core support", "Lua"),
    "store/scripts": ("the lock itself, in Lua", "", ""),
    "store": ("the port that all stores have", "core support", "nlohmann-json"),
    "core": ("types, votes → decision, queue, times; pure: the C++ standard library alone", "support", ""),
    "support": ("result, clocks, durations, text", "", "libmd"),
    "find_object.cpp": ("only where the C++ runtime is linked in", "", ""),
    "name_service.cpp": ("only where libc is linked in", "", ""),
    "no_libm.cpp": ("only where the C++ runtime is linked in", "", ""),
}
FOLDERS = [layer for layer in LAYERS if not layer.endswith(".cpp")]
OUTSIDE_LAYERS = [layer for layer in LAYERS if layer.endswith(".cpp")]

# How the headers of foreign libraries begin.
LIBRARIES = {
    "CLI11": r"CLI/",
    "toml++": r"toml\+\+/",
    "hiredis": r"hiredis/|hiredis\.h$",
    "Lua": r"lua[-0-9.]*/|lua\.h|lualib|lauxlib|luaconf",
    "libmd": r"sha[12]\.h$",
    "OpenSSL": r"openssl/",
    "nlohmann-json": r"nlohmann/",
}

DIRECTIVE = re.compile(r'^[ \t]*#[ \t]*(?:include_next|include|import)(?=[ \t<"]|$)[ \t]*(.*)$')


def layers_below(layer):
    """Those that it may include."""
    return LAYERS[layer][1].split() if layer in LAYERS else []


def library_rule(layer, header):
    """The rule that the layer breaks by including this foreign header, or None."""
    for library, beginning in LIBRARIES.items():
        if re.match(beginning, header):
            users = [user for user, (_, _, libraries) in LAYERS.items() if library in libraries.split()]
            return None if layer in users else f"{library} is for {' and '.join(users)}"
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
        if folder != layer and folder not in layers_below(layer):
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


# --- The drawing. ---

DRAWING = re.compile(r"(?<=<!-- tests/layers.py --draw -->\n)(?:\|.*\n)*")


def drawing():
    """LAYERS as a table."""
    table = "| layer | what is there | may include | its foreign libraries |\n|---|---|---|---|\n"
    for layer, (what, below, libraries) in LAYERS.items():
        names = " ".join(f"`{name}`" for name in below.split())
        table += f"| `{layer}` | {what} | {names} | {libraries.replace(' ', ', ')} |\n"
    return re.sub(r"\|  (?=\|)", "| ", table)


def misdrawn(text):
    """A line for each way in which the drawing differs from the rules, or these from an order."""
    found, order = [], list(LAYERS)
    for layer in LAYERS:
        found += [
            f"tests/layers.py: {layer} may include {other}, which stands above it"
            for other in layers_below(layer)
            if order.index(other) <= order.index(layer)
        ]
    if DRAWING.findall(text) != [drawing()]:
        found.append("ARCHITECTURE.md shows other rules: tests/layers.py --draw")
    return found


def main():
    root = os.path.join(os.path.dirname(__file__), "..")
    architecture = os.path.join(root, "ARCHITECTURE.md")
    with open(architecture, encoding="utf-8") as file:
        text = file.read()
    if sys.argv[1:] == ["--draw"]:
        with open(architecture, "w", encoding="utf-8") as file:
            file.write(DRAWING.sub(lambda _: drawing(), text))
        return
    folders, files = read_tree(root)
    found = violations(folders, files) + misdrawn(text)
    for line in found:
        print(f"layers: {line}")
    number = sum(len(includes(text)) for text in files.values())
    print(f"layers: {len(files)} files, {number} includes, {len(found)} violations")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
