#!/usr/bin/env bash
# Tells which lines of the parsers the fuzz targets reach: builds them once more with Clang's source
# coverage (build/fuzz-coverage), runs them, and prints a table. Needs the package llvm.
#
# usage: tests/fuzz/coverage.sh [SECONDS]
#   SECONDS: how long each target looks for new inputs (10). It begins with the seeds, and with what
#   long runs have found (target fuzz-long).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
seconds=${1:-10}
build=build/fuzz-coverage
found=build/asan/tests/fuzz/corpus

flags="-fprofile-instr-generate -fcoverage-mapping"
export LLVM_PROFILE_FILE=/dev/null # of what is run while building
cmake --preset asan -B "$build" -DCMAKE_CXX_FLAGS="$flags" >/dev/null
cmake --build "$build" --target fuzz

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
objects=()
for source in tests/fuzz/*_fuzz.cpp; do
  name=${source##*/}
  name=${name%_fuzz.cpp}
  mkdir -p "$work/$name"
  inputs=("$work/$name" "tests/fuzz/seeds/$name")
  [[ ! -d $found/$name ]] || inputs+=("$found/$name")
  LLVM_PROFILE_FILE=$work/$name.profraw "$build/tests/fuzz/fuzz-$name" -seed=1 -timeout=30 \
    -max_total_time="$seconds" -artifact_prefix="$build/tests/fuzz/$name-" "${inputs[@]}" \
    >"$work/log" 2>&1 || {
    cat "$work/log" >&2 # the end names the input, which stays
    exit 1
  }
  objects+=(-object "$build/tests/fuzz/fuzz-$name")
done
llvm-profdata merge -o "$work/all" "$work"/*.profraw
llvm-cov export -summary-only -instr-profile "$work/all" "${objects[@]}" >"$work/json"
/usr/bin/python3 tests/fuzz/coverage_table.py "$work/json"
