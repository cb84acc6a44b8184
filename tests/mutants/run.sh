#!/usr/bin/env bash
# Breaks the code on purpose, one change at a time, and demands that the tests notice. Works on a
# copy of the tree.
# usage: tests/mutants/run.sh [NAME…]   (all mutants of tests/mutants/list, or those named)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=tests/mutants/lib.sh
source tests/mutants/lib.sh

# For one test; an endless loop is a way to be caught too.
readonly test_timeout=120

run_tests() {
  in_copy ctest --test-dir build/dev -R "$1" -j "$(nproc)" --timeout "$test_timeout" \
    --no-tests=error "${@:2}" >"$copy/mutant.log" 2>&1
}

# Prints what became of mutant NAME: which test caught it, or survived, or why it was not tried.
try() {
  local name=$1 problem whole verdict
  mutate "$name"
  [[ -z $problem ]] || { echo "error: $problem"; return; }
  if ! build all; then
    verdict="error: it does not build: $(grep -m 1 'error' "$copy/mutant.log" || true)"
  elif run_tests "${value_of[$name.test]}" --stop-on-failure; then
    verdict=survived
  else
    verdict=$(sed -n 's/^[[:space:]]*[0-9]* - \(.*\) (\(.*\)).*$/\1/p' "$copy/mutant.log" |
      sort -u | head -n 1)
    if [[ -n $verdict ]]; then
      verdict="caught by $verdict"
    else
      verdict='error: ctest failed, but no test did'
    fi
  fi
  restore "$name"
  echo "$verdict"
}

read_list tests/mutants/list file test
choose "$@"

make_copy
echo "mutants: building the tree as it is"
configure || die_with_log "the tree does not configure"
build all || die_with_log "the tree does not build"

# Every test must be green while nothing is broken, and there must be one for every mutant: else a
# failure would prove nothing.
all=
for name in "${names[@]}"; do
  all+=${all:+|}${value_of[$name.test]}
  run_tests "${value_of[$name.test]}" -N || die_with_log "ctest cannot list the tests"
  grep -q '^Total Tests: [1-9]' "$copy/mutant.log" ||
    die "$name: no test matches ${value_of[$name.test]}"
done
run_tests "$all" --output-on-failure || die_with_log "tests fail although nothing is broken"

try_all
