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

# Seconds for each thing that is waited for.
readonly limit=180

work=$(mktemp -d)
servers=()
started=()
clean_up() {
  ((${#started[@]} == 0)) || kill "${started[@]}" 2>/dev/null || true
  ((${#servers[@]} == 0)) || kill -KILL "${servers[@]}" 2>/dev/null || true
  wait 2>/dev/null
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

give_up() {
  echo "memcheck.sh: not within $limit s: $*" >&2
  exit 1
}

# await WHAT CMD…: until CMD succeeds.
await() {
  local deadline=$((SECONDS + limit))
  until "${@:2}" >/dev/null 2>&1; do
    ((SECONDS < deadline)) || give_up "$1"
    sleep 0.05
  done
}

for number in 0 1 2; do
  setpriv --pdeathsig KILL redis-server --port 0 --unixsocket "$work/$number" --save '' \
    --dir "$work" >/dev/null &
  servers+=($!)
  await "server $number answers" redis-cli -s "$work/$number" ping
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
  timeout -k 5 "$limit" \
    valgrind --trace-children=yes --trace-children-skip='*/sh,*/sleep,*/true' --track-fds=yes \
    --leak-check=full --errors-for-leak-kinds=definite --show-leak-kinds=definite \
    --log-file="$work/$name.%p" "$program" "$@" </dev/null
}

# errors_in LOG: the first line of each error: it stands above a stack. A descriptor that is open at
# exit is no error to valgrind 3.19, but one to newer ones.
errors_in() {
  local summary
  summary=$(sed -n 's/.*ERROR SUMMARY: \([0-9]*\) errors.*/\1/p' "$1")
  ((${summary:-0} > 0)) || return 0
  sed 's/^==[0-9]*== \{0,1\}//' "$1" | awk '
    /^Open / { open = 1 }
    /^   at 0x/ && before !~ /^Open / { print before; found = 1 }
    { before = $0 }
    END { if (!found && !open) print "errors without a stack" }'
}

# judge NAME NUMBER: of at least so many processes that ended. One that became a command has no
# summary.
judge() {
  local log ended=0 found
  for log in "$work/$1".*; do
    ! grep -q 'ERROR SUMMARY' "$log" || ended=$((ended + 1))
    found=$(errors_in "$log")
    [[ -z $found ]] || check "${log##*/}: $found"
  done
  ((ended >= $2)) || check "looked at $ended processes, not $2"
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

# clean NAME WORD…: a command that is to succeed. `run` is two processes.
clean() {
  local name=$1 processes=1
  shift
  [[ $1 != run ]] || processes=2
  under_valgrind "$name" "$@" >"$work/out" 2>"$work/err" || check "$* failed: $(<"$work/err")"
  judge "$name" "$processes"
  tell "$name"
}

# open_at_exit NAME: how many descriptors each process had open, in the order of the numbers.
open_at_exit() { sed -n 's/.*FILE DESCRIPTORS: \([0-9]*\) open.*/\1/p' "$work/$1".* | sort -n; }

# Under valgrind all takes long: with less, a lease would be over before its first renewal.
clean one-renewal run -S "$one" -k demo -t 9s -- sleep 4
clean many-renewals run -S "$one" -k demo -t 3s -- sleep 12
mapfile -t one_renewal < <(open_at_exit one-renewal)
mapfile -t many_renewals < <(open_at_exit many-renewals)
[[ ${#one_renewal[@]} -ge 2 && ${one_renewal[*]} == "${many_renewals[*]}" ]] ||
  check "one renewal: ${one_renewal[*]-}; many: ${many_renewals[*]-}"
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
judge doctor 1
tell doctor

# The pipes are open at both ends: opening one does not block.
mkfifo "$work/held" "$work/go"
exec {held}<>"$work/held" {go}<>"$work/go"
# shellcheck disable=SC2016
timeout -k 5 "$limit" "$program" run -S "$one" -k demo -- \
  sh -c 'echo >"$1/held"; read -r _ <"$1/go"' sh "$work" &
holder=$!
started+=("$holder")
read -r -t "$limit" -u "$held" _ || give_up "the holder has the lock"
under_valgrind waiter run -q -S "$one" -k demo -- true &
waiter=$!
started+=("$waiter")
one_waits() { [[ $(redis-cli -s "$work/0" zcard 'redlock:queue:{demo}') == 1 ]]; }
await "the waiter is in the queue" one_waits
echo >&"$go"
wait "$holder" || check "the holder failed"
wait "$waiter" || check "the waiter failed"
judge waiter 2
tell waiter

echo "$passed passed, $failed failed"
((failed == 0))
