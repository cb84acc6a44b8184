#!/usr/bin/python3
"""Shows that tests/layers.py finds what it is there to find: plants includes in what it has read of
src/, one at a time."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import layers
from tree_rules import ROOT, Checks

FOLDERS, FILES = layers.read_tree(ROOT)

checks = Checks("layers_test")


def count(verdict, expected, what, output):
    checks.count(verdict != expected and f"{what}: {verdict}, expected {expected}: {output}")


def judge(found, file):
    """Refused for this file, not for something else."""
    if not found:
        return "accepted"
    mine = (f"src/{file}:", f"src/{os.path.dirname(file)}:")
    return "refused" if all(line.startswith(mine) for line in found) else "misjudged"


def check(expected, file, line):
    """What is said of a tree in which FILE, which may be new, ends with LINE."""
    folder = os.path.dirname(file)
    folders = FOLDERS if not folder or folder in FOLDERS else FOLDERS + [folder]
    found = layers.violations(folders, {**FILES, file: FILES.get(file, "") + line + "\n"})
    count(judge(found, file), expected, f"{file} with {line}", found)


# Each layer against each: the table of tests/layers.py once more, from above to below.
MAY_INCLUDE = {
    "cli": "run output child engine store core support",
    "run": "output child engine store core support",
    "output": "child engine core support",
    "child": "core support",
    "engine": "store core support",
    "store/redis": "store core support",
    "store/local": "store core support",
    "store": "core support",
    "core": "support",
    "support": "",
}
for layer in MAY_INCLUDE:
    for other in MAY_INCLUDE:
        may = other == layer or other in MAY_INCLUDE[layer].split()
        check(
            "accepted" if may else "refused",
            f"{layer}/planted.cpp",
            f'#include "{other}/planted.hpp"',
        )

check("accepted", "main.cpp", '#include "cli/planted.hpp"')
check("refused", "main.cpp", '#include "engine/planted.hpp"')
check("refused", "main.cpp", '#include "store/redis/planted.hpp"')
check("accepted", "stores.cpp", '#include "store/redis/planted.hpp"')
check("accepted", "stores.cpp", '#include "store/local/planted.hpp"')
check("refused", "stores.cpp", '#include "engine/planted.hpp"')
check("refused", "stray.cpp", "#include <string>")
check("refused", "shell/planted.cpp", "#include <string>")
check("refused", "core/inner/planted.cpp", "#include <string>")

# However it is spelt.
check("refused", "core/planted.hpp", '  #  include   "engine/planted.hpp" // reason')
check("refused", "core/planted.hpp", '\t#\tinclude\t"engine/planted.hpp"')
check("refused", "core/planted.hpp", '#include"engine/planted.hpp"')
check("refused", "core/planted.hpp", '#import "engine/planted.hpp"')
check("refused", "core/planted.hpp", '#include_next "engine/planted.hpp"')
check("refused", "core/planted.hpp", '#include "../engine/planted.hpp"')
check("refused", "core/planted.hpp", '#include "core/../engine/planted.hpp"')
check("refused", "core/planted.hpp", '#include "planted.hpp"')
check("refused", "core/planted.hpp", "#include ENGINE_HEADER")
check("refused", "core/planted.inc", '#include "engine/planted.hpp"')
check("refused", "support/planted.hpp", "#include <core/types.hpp>")

# Foreign libraries.
check("accepted", "cli/planted.cpp", "#include <CLI/CLI.hpp>")
check("refused", "output/planted.cpp", "#include <CLI/CLI.hpp>")
check("refused", "output/planted.cpp", "#include <toml++/toml.h>")
check("accepted", "store/redis/planted.cpp", "#include <hiredis/hiredis.h>")
check("refused", "store/planted.cpp", "#include <hiredis/hiredis.h>")
check("refused", "store/planted.cpp", "#include <openssl/ssl.h>")
check("refused", "engine/planted.cpp", "#include <hiredis/read.h>")
check("refused", "cli/planted.cpp", "#include <hiredis/hiredis.h>")
check("accepted", "store/local/planted.cpp", "#include <lua.hpp>")
check("refused", "store/planted.cpp", "#include <lua.hpp>")
check("refused", "store/planted.cpp", "#include <lua.h>")
check("refused", "store/planted.cpp", "#include <lua5.1/lua.hpp>")
check("accepted", "support/planted.cpp", "#include <sha2.h>")
check("refused", "store/local/planted.cpp", "#include <sha1.h>")
check("accepted", "output/planted.cpp", "#include <nlohmann/json.hpp>")
check("accepted", "store/planted.cpp", "#include <nlohmann/json.hpp>")
check("refused", "cli/planted.cpp", "#include <nlohmann/json.hpp>")
check("refused", "engine/planted.cpp", "#include <nlohmann/json.hpp>")
check("accepted", "engine/planted.cpp", "#include <asio.hpp>")
check("refused", "core/planted.cpp", "#include <asio.hpp>")
check("refused", "core/planted.cpp", "#include <asio/steady_timer.hpp>")
check("refused", "core/planted.cpp", "#include <fmt/format.h>")
check("refused", "core/planted.cpp", "#include <unistd.h>")
check("accepted", "core/planted.cpp", "#include <vector>")
check("accepted", "core/planted.cpp", "#include <tl/expected.hpp>")


def check_program(expected, root, words):
    """What the program says of the tree at ROOT; WORDS are in the message of a refusal."""
    ran = subprocess.run(
        [os.path.join(ROOT, "tests/layers.py"), root], capture_output=True, text=True
    )
    verdict = {0: "accepted", 1: "refused" if words in ran.stderr else "misjudged"}.get(
        ran.returncode, "crashed"
    )
    count(verdict, expected, words, ran.stderr)


# The same as it is read from files.
with tempfile.TemporaryDirectory() as copy:
    src = pathlib.Path(copy, "src")
    shutil.copytree(os.path.join(ROOT, "src"), src)
    check_program("accepted", copy, "the tree as it is")
    planted = src / "core" / "planted.hpp"
    planted.write_bytes(b'// \xff\n#include "engine/planted.hpp"\n')
    check_program("refused", copy, "src/core/planted.hpp:2: core must not include engine")
    planted.unlink()
    (src / "planted").mkdir()
    check_program("refused", copy, "src/planted: an unknown folder")
    # An empty tree must not pass for a clean one.
    shutil.rmtree(src)
    src.mkdir()
    check_program("refused", copy, "nothing was checked")

checks.exit()
