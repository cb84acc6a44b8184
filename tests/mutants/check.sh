#!/usr/bin/env bash
# Whether every mutant still applies to the source: its text occurs exactly once in its file. Tries none of them.
# usage: tests/mutants/check.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=tests/mutants/lib.sh
source tests/mutants/lib.sh

stale=0
# check_list FILE KEY…
check_list() {
  local list=$1 name problem whole
  names=() value_of=() old_of=() new_of=()
  read_list "$@"
  for name in "${names[@]}"; do
    mutate "$name"
    if [[ -z $problem ]]; then
      restore "$name"
      continue
    fi
    echo "$list: $name: $problem" >&2
    stale=$((stale + 1))
  done
  echo "$list: ${#names[@]} mutants"
}

make_copy
check_list tests/mutants/list file test
check_list tests/sim/mutants/list file rule
((stale == 0)) || die "$stale mutants do not apply to the source"
