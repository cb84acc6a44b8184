#!/usr/bin/env bash
# Which lines and branches of src no test reaches, or no seed of the simulation.
# On demand: `cmake --build --preset dev --target check-coverage` or `--target sim-engine`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. packaging/dependencies.sh

usage() {
  cat <<'END'
usage: tests/coverage.sh [--simulation] [--report]

Builds the program and its tests with GCC's --coverage in build/coverage, runs the unit tests and
the bats tests there, and lists the lines and branches of src that none of them reached, with
totals. Fails when a test fails, or a file has more unreached lines than tests/coverage/unreached
says.
  --simulation  the same for the simulation alone, in build/coverage-simulation: which lines and
                branches of what runs in it the seeds of some profiles reach, a file at a time
  --report      builds and runs nothing: lists what the last run reached
END
}

run=1
of_simulation=
for word; do
  case $word in
    -h | --help)
      usage
      exit
      ;;
    --simulation) of_simulation=1 ;;
    --report) run= ;;
    *)
      usage >&2
      exit 64
      ;;
  esac
done

build=$PWD/build/coverage${of_simulation:+-simulation}
status=0

# Some seeds of each profile that promises something.
simulate() {
  local profile seeds
  while read -r profile seeds; do
    echo "coverage: seeds $seeds of $profile"
    "$build/tests/sim/redlock_sim" --quiet --profile "$profile" --seeds "$seeds" || status=1
  done <<'END'
promise 1-2000
hosts 1-1000
spoilt-keys 1-1000
one-forgets 1-500
nightly 1-40
cluster 1-600
sentinel 1-600
END
}

if [[ -n $run ]]; then
  ensure_test_packages
  mkdir -p "$build"
  # An object beside the product's: CMake links it into each program. In batches as large as a layer
  # there are few files of counters, which each process writes when it ends. The batches shadow
  # names, so warnings are none of this build's.
  flush=$build/flush.o
  g++ -O2 -fPIE -DCOUNTERS="\"$build\"" -c tests/coverage/flush.cpp -o "$flush"
  cmake --preset dev -B "$build" -DREDLOCK_WERROR=OFF \
    -DCMAKE_CXX_COMPILER=g++ -DCMAKE_CXX_FLAGS_DEBUG="-g1 -O0 --coverage" \
    -DCMAKE_EXE_LINKER_FLAGS="$flush --coverage -Wl,--wrap=_exit,--wrap=raise" >/dev/null
  cmake --build "$build" -j "$(nproc)" ${of_simulation:+--target redlock_sim}
  find "$build" -name '*.gcda' -delete
  if [[ -n $of_simulation ]]; then
    simulate
  else
    ctest --test-dir "$build" -L '^(unit|bats)$' \
      -j "$((2 * $(nproc)))" --output-on-failure --no-tests=error || status=$?
  fi
fi
tests/coverage/report.py ${of_simulation:+--simulation} "$build" || status=1
exit "$status"
