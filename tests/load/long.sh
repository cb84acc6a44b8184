#!/usr/bin/env bash
# The promise under load at full size: each row many times, as root and as an ordinary user, beside
# eight busy loops. Takes hours.
# usage: tests/load/long.sh [TIMES [TIMES-OF-LONG-ROWS]]    (default 20 5; needs REDLOCK_CLI,
# LOAD_TREE and root)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
times=${1:-20} long_times=${2:-5}
: "${REDLOCK_CLI:?the program to try}" "${LOAD_TREE:?the load-tree tool}"
readonly ORDINARY_UID=65534

loops=()
# shellcheck disable=SC2329  # called by the trap
end_loops() { kill "${loops[@]}"; }
trap end_loops EXIT
for _ in {1..8}; do
  sh -c 'while :; do :; done' &
  loops+=($!)
done

failed=0
# row TIMES WORD…: one line with what became of so many strikes. Those that did not strike, and
# those that failed themselves, are neither in time nor late.
row() {
  local count=$1 i said in_time=0 late=0 unstruck=0 failures=0 untrue=0
  shift
  for ((i = 0; i < count; ++i)); do
    said=$(timeout 300 python3 strike.py "$@") || true
    case $said in
      *'"struck": false'*) unstruck=$((unstruck + 1)) ;;
      *'"in_time": true'*) in_time=$((in_time + 1)) ;;
      *'"in_time": false'*) late=$((late + 1)) ;;
      *) failures=$((failures + 1)) ;;
    esac
    [[ $said != *'"truthful": false'* ]] || untrue=$((untrue + 1))
  done
  printf '%-60s %3d in time, %d late, %d not struck, %d with an untrue exit status, %d failed\n' \
    "$*" "$in_time" "$late" "$unstruck" "$untrue" "$failures"
  ((untrue == 0 && failures == 0 && in_time + late > 0)) || failed=1
}

for who in "" "--user $ORDINARY_UID"; do
  for where in "" --terminal; do
    # shellcheck disable=SC2206  # words on purpose
    common=($who $where)
    row "$times" "${common[@]}" --ttl 2s busy 50
    row "$times" "${common[@]}" --ttl 5s busy 300
    row "$times" "${common[@]}" --ttl 5s busy 300 --sessions
    row "$times" "${common[@]}" --ttl 5s busy 1000
    row "$times" "${common[@]}" --ttl 5s --quota 0 busy 300
    row "$times" "${common[@]}" --ttl 5s --quota 0.5 busy 30
    row "$times" "${common[@]}" --ttl 5s --quota 0.1 busy 30
    row "$times" "${common[@]}" --ttl 5s idle 4000
    row "$times" "${common[@]}" --ttl 5s idle 6000
    row "$times" "${common[@]}" --ttl 5s fat 1500
    row "$times" "${common[@]}" --ttl 5s fat 7000
    row "$times" "${common[@]}" --ttl 5s forks 20
    row "$long_times" "${common[@]}" --ttl 30s busy 1000
  done
done
((failed == 0))
