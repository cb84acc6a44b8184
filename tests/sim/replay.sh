#!/usr/bin/env bash
# Fails when the same seeds take a different course in another process.
# usage: tests/sim/replay.sh REDLOCK_SIM
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
  schedules=(--profile "${profile%:*}" --seeds "1-${profile#*:}" -v)
  "$1" "${schedules[@]}" >"$work/history" || fail "$(tail -n 2 "$work/history")"
  [[ -s $work/history ]] || fail 'no history'
  "$1" "${schedules[@]}" | cmp "$work/history" - || fail 'the histories differ'
done
