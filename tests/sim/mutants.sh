#!/usr/bin/env bash
# Breaks one rule of the protocol at a time, in a copy of the tree, and expects the simulation to
# find it: prints which rule of the referee each mutant violated, and at which seed.
# usage: [SEEDS=N] [PROFILES='NAME…'] tests/sim/mutants.sh [NAME…]   (all mutants of
# tests/sim/mutants/list, or those named; in all profiles with a promise, or in those named)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=tests/mutants/lib.sh
source tests/mutants/lib.sh

readonly seeds=${SEEDS:-20000}
read -ra profiles <<<"${PROFILES:-promise hosts spoilt-keys one-forgets nightly cluster sentinel}"
# The timeout of one profile in seconds, several times what it takes. A schedule that never ends
# counts as caught, too.
readonly timeout=300

# Runs seeds 1 to $1 of each profile. What the profiles promise: the whole promise, also with hosts
# that can be told apart and with votes of several nodes; what remains of it when helper keys are
# spoilt and when the only server forgets; and one success a day. The profile nightly gets a
# twentieth of the seeds, since its schedules are that much longer.
simulate() {
  local profile number
  for profile in "${profiles[@]}"; do
    number=$1
    [[ $profile != nightly ]] || number=$((number / 20 + 1))
    in_copy timeout "$timeout" build/dev/tests/sim/redlock_sim --quiet \
      --profile "$profile" --seeds "1-$number" >"$copy/mutant.log" 2>&1 || return
  done
}

# Prints the verdict on mutant NAME: `caught`, by which rule and at which seed; `survived`; or why
# it could not be tried.
try() {
  local name=$1 problem whole verdict status=0
  mutate "$name"
  [[ -z $problem ]] || { echo "error: $problem"; return; }
  if ! build redlock_sim; then
    verdict="error: it does not build: $(grep -m 1 'error' "$copy/mutant.log" || true)"
  else
    simulate "$seeds" || status=$?
    case $status in
      0) verdict='survived' ;;
      1)
        verdict=$(sed -n \
          's/^seed \([0-9]*\) of .* violates \([a-z]*\): .*/caught by \2 at seed \1/p' \
          "$copy/mutant.log")
        ;;
      124) verdict="caught by the timeout" ;;
      *) verdict="caught by a crash ($status)" ;;
    esac
    [[ -n $verdict ]] || verdict="error: $(tail -n 1 "$copy/mutant.log")"
  fi
  restore "$name"
  echo "$verdict"
}

read_list tests/sim/mutants/list rule file
choose "$@"

make_copy
echo "mutants: building the simulation as it is"
configure || die_with_log "the tree does not configure"
build redlock_sim || die_with_log "the simulation does not build"
simulate 2000 || die_with_log "the simulation finds a violation although nothing is broken"

try_all
