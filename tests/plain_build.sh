#!/usr/bin/env bash
# Builds the program as a distribution does: with make, without a preset, batches or a precompiled
# header, Release. Batches and precompiled headers hide an include that is missing, and a debug build
# has no _FORTIFY_SOURCE to complain of a result that is ignored (nor has -O0, which is for a full
# run: it finds missing includes in less time). Warnings are errors. The last line
# says how many compilers did: `N passed, N failed`.
# usage: [OPTIMIZE=-O0] tests/plain_build.sh [g++|clang++…]     (without a word both; -O2)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

(($#)) || set -- g++ clang++
jobs=$(nproc)
optimize=${OPTIMIZE:--O2}
hardening=ON # _FORTIFY_SOURCE needs an optimiser
[[ $optimize != -O0 ]] || hardening=OFF
readonly jobs optimize hardening

build_with() {
  local tree=build/plain/$1
  cmake -S . -B "$tree" -G 'Unix Makefiles' -DBUILD_TESTING=OFF -DREDLOCK_WERROR=ON \
    -DCMAKE_CXX_COMPILER="$1" -DCMAKE_CXX_FLAGS_RELEASE="$optimize -DNDEBUG" \
    -DREDLOCK_HARDENING="$hardening" >/dev/null &&
    make -C "$tree" --no-print-directory -s -k -j "$jobs" &&
    "$tree/src/redlock-cli" --version
}

passed=0
failed=0
for compiler; do
  printf '== every source by itself: %s\n' "$compiler"
  if build_with "$compiler"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done
echo "$passed passed, $failed failed"
((failed == 0))
