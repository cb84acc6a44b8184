#!/usr/bin/env bash
# Fails when the same seeds take a different course in another process, in which the functions of
# the scripts are made once.
# usage: tests/sim/replay.sh REDLOCK_SIM [ANOTHER [FACTOR]]   (ANOTHER: the program of the other
# process, such as redlock_sim_fast; FACTOR: so many times as many seeds)
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  echo "replay: $profile: $1" >&2
  exit 1
}

# A profile and how many seeds of it: schedules of the last three take longer.
profiles='promise:100 hosts:30 spoilt-keys:30 one-forgets:30 cluster:15 sentinel:15 nightly:1'
for profile in $profiles; do
  schedules=(--profile "${profile%:*}" --seeds "1-$((${profile#*:} * ${3:-1}))" -v)
  "$1" "${schedules[@]}" >"$work/history" || fail "$(tail -n 2 "$work/history")"
  [[ -s $work/history ]] || fail 'no history'
  "${2:-$1}" "${schedules[@]}" --functions-once | cmp "$work/history" - ||
    fail 'the histories differ'
done
