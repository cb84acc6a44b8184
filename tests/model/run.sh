#!/usr/bin/env bash
# Checks a model with Spin: the design must have no error, and each change that breaks it must have
# one.
# usage: tests/model/run.sh supervision|users
set -euo pipefail
export LC_ALL=C
name=${1-}
model=$(realpath "$(dirname "${BASH_SOURCE[0]}")")/$name.pml
[[ $name =~ ^(supervision|users)$ ]] || {
  echo "usage: $0 supervision|users" >&2
  exit 64
}

for tool in spin tcc; do
  command -v "$tool" >/dev/null || {
    echo "model: $tool is not installed" >&2
    exit 1
  }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# title | must it hold? | macros. What the documents promise, and what they say is not covered.
case $name in
  supervision) cases=(
    'the design, a pause and a kill     |holds|'
    'the design, three pauses           |holds|PAUSES=3 KILLS=0'
    'the design, three renewals         |holds|RENEWALS=3 KILLS=0'
    'both killed, the command itself    |holds|BOTH_KILLED COMMAND_ONLY KILLS=2 PAUSES=0'
    'both killed, its descendant        |fails|BOTH_KILLED KILLS=2 PAUSES=0'
    'both stopped, the command itself   |fails|BOTH_STOPPED COMMAND_ONLY PAUSES=2 KILLS=0'
    'NO_WATCHDOG                        |fails|NO_WATCHDOG'
    'FRONT_KILLS_LATE                   |fails|FRONT_KILLS_LATE'
    'RELEASE_EARLY                      |fails|RELEASE_EARLY'
    'KILL_COMMAND_ONLY                  |fails|KILL_COMMAND_ONLY'
    'DEADLINE_FROM_REPLY                |fails|DEADLINE_FROM_REPLY'
    'DEADLINE_AFTER_GO                  |fails|DEADLINE_AFTER_GO'
    'STOP_UNTOLD                        |fails|STOP_UNTOLD'
    'FRONT_UNSEEN                       |fails|FRONT_UNSEEN'
    'NO_PDEATHSIG, both killed          |fails|NO_PDEATHSIG BOTH_KILLED COMMAND_ONLY KILLS=2 PAUSES=0'
    'NO_GETPPID, both killed            |fails|NO_GETPPID BOTH_KILLED COMMAND_ONLY KILLS=2 PAUSES=0'
  ) ;;
  users) cases=(
    'the design, a server loses all     |holds|WIPES=1'
    'the design, it loses the record    |holds|LOSSES=1'
    'the design, both losses, one user  |holds|WIPES=1 LOSSES=1 USERS=1'
    'the design, freedom                |holds|WIPES=1 LOSSES=1 NO_RIVAL USERS=1'
    'the design, PROMPT, every server   |holds|NO_RIVAL PROMPT EVERY_SERVER'
    'TOMBSTONE_BESIDE_USERS             |fails|TOMBSTONE_BESIDE_USERS NO_RIVAL PROMPT'
    'RELEASE_IGNORES_USERS              |fails|RELEASE_IGNORES_USERS'
    'NO_QUORUM                          |fails|NO_QUORUM'
    'DEADLINE_FROM_PTTL                 |fails|DEADLINE_FROM_PTTL'
    'UNDO_BESIDE_USERS                  |fails|UNDO_BESIDE_USERS'
    'END_DELETES                        |fails|END_DELETES'
    'LOST_IS_NONE                       |fails|LOST_IS_NONE LOSSES=1 USERS=1'
    'HEAL_FORGETS                       |fails|HEAL_FORGETS LOSSES=1 USERS=1'
    'NO_GUARD                           |fails|NO_GUARD WIPES=1'
    'USERS_STAY                         |fails|USERS_STAY USERS=1 NO_RIVAL PROMPT'
  ) ;;
esac

# verify MACRO…: the whole state space, or up to the first error. tcc: other compilers need longer
# than most checkers then run. -E: what a dead guard leaves undone is no deadlock; the model itself
# says what must have come to its end. -w20: a table for a million states; clearing that of the
# default, 128 MiB, takes longer than most cases.
verify() {
  local defines=("${@/#/-D}")
  rm -f pan pan.log
  if ! { spin -a "${defines[@]}" "$model" && tcc -w -DSAFETY -o pan pan.c; } >spin.log 2>&1; then
    cat spin.log >&2
    exit 1
  fi
  ./pan -E -n -m20000 -w20 >pan.log 2>&1
}

wrong=0
printf '%-38s %-6s %-6s %10s %7s\n' '' wanted found states depth
for case in "${cases[@]}"; do
  IFS='|' read -r title wanted macros <<<"$case"
  read -ra words <<<"$macros"
  verify "${words[@]}" || true
  errors=$(sed -n 's/.*errors: \([0-9]*\)$/\1/p' pan.log)
  states=$(sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' pan.log)
  depth=$(sed -n 's/.*depth reached \([0-9]*\),.*/\1/p' pan.log)
  found=unclear
  if [[ $errors == 0 ]]; then
    found=holds
    # A search that was cut off proves nothing.
    ! grep -qE 'Search not completed|max search depth too small|out of memory' pan.log ||
      found='cut'
  elif [[ -n $errors ]] && grep -q '^pan:1: assertion violated' pan.log; then
    found=fails
  fi
  mark=
  [[ $found == "$wanted" ]] || {
    wrong=$((wrong + 1))
    mark='  <-- WRONG'
  }
  printf '%-38s %-6s %-6s %10s %7s%s\n' "$title" "$wanted" "$found" "${states:--}" \
    "${depth:--}" "$mark"
done

((wrong == 0)) || {
  echo "model: $wrong of ${#cases[@]} cases are not as they must be" >&2
  exit 1
}
echo "model: all ${#cases[@]} cases are as they must be"
