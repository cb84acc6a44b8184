#!/usr/bin/env bash
# Which lines and branches of src no unit test and no bats test reaches.
# On demand: `cmake --build --preset dev --target check-coverage`.
# usage: tests/coverage.sh   (the report is build/coverage/report.html, its totals are printed)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. packaging/dependencies.sh

ensure_test_packages
ensure_packages gcovr
build=$PWD/build/coverage
cmake --preset ci -B "$build" -DREDLOCK_WERROR=OFF -DCMAKE_CXX_COMPILER=g++ \
  -DCMAKE_CXX_FLAGS_DEBUG="-g1 -O0 --coverage -fprofile-update=atomic" >/dev/null
cmake --build "$build" -j "$(nproc)"
find "$build" -name '*.gcda' -delete
status=0
ctest --test-dir "$build" -L '^(unit|bats)$' -j "$((2 * $(nproc)))" --output-on-failure \
  --no-tests=error || status=$?
# A process that ends by KILL, _exit or a signal writes no counters: the guards, above all.
gcovr --root . --filter src/ --object-directory "$build" --gcov-ignore-parse-errors \
  --exclude-unreachable-branches --exclude-throw-branches --sort-uncovered \
  --html-details "$build/report.html" --print-summary "$build"
exit "$status"
