#!/usr/bin/env bash
# Compiles each source of the program by itself, as a distribution does: no preset, no batches, no
# precompiled header, Release. Batches and precompiled headers hide an include that is missing, and
# a debug build has no _FORTIFY_SOURCE to complain of a result that is ignored. Warnings are errors.
# GCC builds the program with make; Clang reads the sources alone (-fsyntax-only). The last line
# says how many of them did: `N passed, N failed`.
# usage: tests/plain_build.sh [gcc|clang…]     (without a word both)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

(($#)) || set -- gcc clang
jobs=$(nproc)
readonly jobs

# configure COMPILER
configure() {
  cmake -S . -B "build/plain/$1" -G 'Unix Makefiles' -DBUILD_TESTING=OFF -DREDLOCK_WERROR=ON \
    -DCMAKE_CXX_COMPILER="$1" -DCMAKE_CXX_FLAGS_RELEASE='-O2 -DNDEBUG' >/dev/null
}

with_gcc() {
  configure g++ && make -C build/plain/g++ --no-print-directory -s -k -j "$jobs" &&
    build/plain/g++/src/redlock-cli --version
}

# Without the sources that the build makes: they are data.
with_clang() {
  configure clang++ || return
  make -C build/plain/clang++ --no-print-directory -s redlock-protocol redlock-build || return
  jq -r --arg src "$PWD/src/" '.[] | select(.file | startswith($src)) |
      "cd \(.directory | @sh) && \(.command | sub(" -o \\S+"; "")) -fsyntax-only\u0000"' \
    build/plain/clang++/compile_commands.json |
    tr -d '\n' | xargs -0 -P "$jobs" -I '{}' bash -c '{}'
}

passed=0
failed=0
for compiler; do
  printf '== every source by itself: %s\n' "$compiler"
  if "with_$compiler"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done
echo "$passed passed, $failed failed"
((failed == 0))
