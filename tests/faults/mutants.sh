#!/usr/bin/env bash
# Breaks one rule at a time, in a copy of the tree, and demands that the fault run notices within
# ten minutes: prints for each after how many seconds, and the first violation.
# usage: tests/faults/mutants.sh [NAME…]   (all mutants of tests/faults/mutants/list, or those
# named)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=tests/mutants/lib.sh
source tests/mutants/lib.sh

readonly limit=600
# Storms, and each scene once.
readonly slice=60

# How a violation begins.
readonly rule='(exclusion|tree|fence|order|liveness|truth|left|no violation):'

# One slice of a profile; leaves its output in $copy/faults.log.
run_slice() {
  local build=$copy/build/dev
  env REDLOCK_CLI="$build/src/redlock-cli" FAULT_WITNESS="$build/tests/faults/fault-witness" \
    CLOCK_STEP="$build/tests/faults/libclock-step.so" TMPDIR="$copy" \
    tests/faults/run.py --profile "$1" --seconds "$slice" >"$copy/faults.log" 2>&1
}

# What the profile says of the program in the copy, with a fresh seed each time, until the time is
# up.
judge() {
  local profile=$1 begin=$SECONDS seconds
  while ((SECONDS - begin < limit)); do
    if run_slice "$profile"; then continue; fi
    if ! grep -q '^faults: 0 of 1 profiles' "$copy/faults.log"; then
      echo "error: $(tail -n 1 "$copy/faults.log")"
      return
    fi
    seconds=$((SECONDS - begin))
    echo "caught after $seconds s: $(grep -Em 1 "^  $rule" "$copy/faults.log" | cut -c 3-)"
    return
  done
  echo survived
}

try() {
  local name=$1 problem whole verdict
  mutate "$name"
  [[ -z $problem ]] || { echo "error: $problem"; return; }
  if ! build redlock-cli; then
    verdict="error: it does not build: $(grep -m 1 'error' "$copy/mutant.log" || true)"
  else
    verdict=$(judge "${value_of[$name.profile]}")
  fi
  restore "$name"
  echo "$verdict"
}

read_list tests/faults/mutants/list rule file profile
choose "$@"

make_copy
echo "mutants: building the program as it is"
configure || die_with_log "the tree does not configure"
build redlock-cli || die_with_log "the program does not build"
build fault-witness || die_with_log "the witness does not build"
build clock-step || die_with_log "the library does not build"
profiles=()
for name in "${names[@]}"; do profiles+=("${value_of[$name.profile]}"); done
for profile in $(printf '%s\n' "${profiles[@]}" | sort -u); do
  run_slice "$profile" && continue
  cat "$copy/faults.log"
  die "$profile: violations although nothing is broken"
done

try_all
