#!/usr/bin/env bash
# Every process of redlock-cli under valgrind: it reads nothing that was never written, loses no
# memory, and its guards have as many descriptors after many renewals as after one.
# usage: tests/memcheck.sh [PROGRAM]    (default build/dev/src/redlock-cli)
# On demand: `cmake --build --preset dev --target check-memory`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. packaging/dependencies.sh
program=$(realpath "${1:-build/dev/src/redlock-cli}")
ensure_packages valgrind redis-server
# Nothing of the caller's settings.
for variable in ${!REDLOCK_@}; do unset "$variable"; done
export REDLOCK_RESTART_GUARD=0

work=$(mktemp -d)
servers=()
clean_up() {
  ((${#servers[@]} == 0)) || kill -KILL "${servers[@]}" 2>/dev/null || true
  wait 2>/dev/null
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

for number in 0 1 2; do
  setpriv --pdeathsig KILL redis-server --port 0 --unixsocket "$work/$number" --save '' \
    --dir "$work" >/dev/null &
  servers+=($!)
  until redis-cli -s "$work/$number" ping >/dev/null 2>&1; do sleep 0.05; done
done
one=unix://$work/0
three=unix://$work/0,unix://$work/1,unix://$work/2

passed=0
failed=0
problem=
# check WORDS…: remembers the first problem of this test.
check() { [[ -n $problem ]] || problem=$*; }

# under_valgrind NAME WORD…: runs redlock-cli; each of its processes leaves $work/NAME.PID. The
# commands that it runs are not looked at.
under_valgrind() {
  local name=$1
  shift
  valgrind --trace-children=yes --trace-children-skip='*/sh,*/sleep,*/true' --track-fds=yes \
    --leak-check=full --errors-for-leak-kinds=definite --show-leak-kinds=definite \
    --log-file="$work/$name.%p" "$program" "$@"
}

# What valgrind calls the errors that count. A descriptor that is open at exit is none to valgrind
# 3.19, but one to newer ones.
readonly errors='uninitialised|[Ii]nvalid|Mismatched|overlap|are definitely lost'

# Of the processes that ended; one that became a command has no summary.
judge() {
  local log summary
  for log in "$work/$1".*; do
    summary=$(sed -n 's/.*ERROR SUMMARY: \([0-9]*\) errors.*/\1/p' "$log")
    if [[ ${summary:-0} != 0 ]] && grep -Eq "$errors" "$log"; then
      check "${log##*/}: $(grep -Em1 -A3 "$errors" "$log")"
    fi
  done
  grep -lq 'ERROR SUMMARY' "$work/$1".* || check "no process was looked at"
}

tell() {
  if [[ -n $problem ]]; then
    failed=$((failed + 1))
    printf 'not ok %s\n%s\n' "$1" "$problem"
  else
    passed=$((passed + 1))
    printf 'ok %s\n' "$1"
  fi
  problem=
}

# clean NAME WORD…: a command that is to succeed.
clean() {
  local name=$1
  shift
  under_valgrind "$name" "$@" >"$work/out" 2>"$work/err" || check "$* failed: $(<"$work/err")"
  judge "$name"
  tell "$name"
}

# open_at_exit NAME: how many descriptors each process had open, in the order of the numbers.
open_at_exit() { sed -n 's/.*FILE DESCRIPTORS: \([0-9]*\) open.*/\1/p' "$work/$1".* | sort -n; }

# Under valgrind all takes long: with less, a lease would be over before its first renewal.
clean one-renewal run -S "$one" -k demo -t 9s -- sleep 4
clean many-renewals run -S "$one" -k demo -t 3s -- sleep 12
[[ $(open_at_exit one-renewal) == "$(open_at_exit many-renewals)" ]] ||
  check "one renewal: $(open_at_exit one-renewal | xargs);" \
    "many: $(open_at_exit many-renewals | xargs)"
tell "renewals open no descriptors"

clean quorum run -S "$three" -k demo -- true
kill -STOP "${servers[2]}"
clean silent-server run -S "$three" -k demo -- true
kill -CONT "${servers[2]}"
clean local run -S "local:$work" -k demo -- true
clean several-keys run -S "$one" -k first -k second --shared -- true
clean acquire acquire -S "$three" -k demo --ttl 60s --token-file "$work/token"
clean extend extend -S "$three" -k demo --ttl 60s --token-file "$work/token"
clean status status -S "$three" --json demo
clean release release -S "$three" -k demo --token-file "$work/token"
under_valgrind doctor doctor -S "$three" >"$work/out" || true # it finds fault with such servers
judge doctor
tell doctor

mkfifo "$work/held" "$work/go"
"$program" run -S "$one" -k demo -- sh -c 'echo >"$1/held"; read -r _ <"$1/go"' sh "$work" &
holder=$!
read -r _ <"$work/held"
under_valgrind waiter run -q -S "$one" -k demo -- true &
waiter=$!
until [[ $(redis-cli -s "$work/0" zcard 'redlock:queue:{demo}') == 1 ]]; do sleep 0.05; done
echo >"$work/go"
wait "$holder" || check "the holder failed"
wait "$waiter" || check "the waiter failed"
judge waiter
tell waiter

echo "$passed passed, $failed failed"
((failed == 0))
