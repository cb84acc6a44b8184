#!/usr/bin/env bash
# Which lines and branches of src no test reaches.
# On demand: `cmake --build --preset dev --target check-coverage`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. packaging/dependencies.sh

usage() {
  cat <<'END'
usage: tests/coverage.sh [--report]

Builds the program and its tests with GCC's --coverage in build/coverage, runs the unit tests and
the bats tests there, and lists the lines and branches of src that none of them reached, with
totals. Fails when a test fails, or a file has more unreached lines than tests/coverage/unreached
says.
  --report  builds and runs nothing: lists what the last run reached
END
}

run=1
case "$#,${1-}" in
  0,) ;;
  1,-h | 1,--help)
    usage
    exit
    ;;
  1,--report) run= ;;
  *)
    usage >&2
    exit 64
    ;;
esac

build=$PWD/build/coverage
status=0
if [[ -n $run ]]; then
  ensure_test_packages
  mkdir -p "$build"
  # An object beside the product's: CMake links it into each program. In batches as large as a layer
  # there are few files of counters, which each process writes when it ends. The batches shadow
  # names, so warnings are none of this build's.
  flush=$build/flush.o
  g++ -O2 -fPIE -DCOUNTERS="\"$build\"" -c tests/coverage/flush.cpp -o "$flush"
  cmake --preset dev -B "$build" -DREDLOCK_WERROR=OFF -DCMAKE_UNITY_BUILD_BATCH_SIZE=30 \
    -DCMAKE_CXX_COMPILER=g++ -DCMAKE_CXX_FLAGS_DEBUG="-g1 -O0 --coverage" \
    -DCMAKE_EXE_LINKER_FLAGS="$flush --coverage -Wl,--wrap=_exit,--wrap=raise" >/dev/null
  cmake --build "$build" -j "$(nproc)"
  find "$build" -name '*.gcda' -delete
  ctest --test-dir "$build" -L '^(unit|bats)$' \
    -j "$((2 * $(nproc)))" --output-on-failure --no-tests=error || status=$?
fi
tests/coverage/report.py "$build" || status=1
exit "$status"
