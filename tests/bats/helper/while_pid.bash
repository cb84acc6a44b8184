# shellcheck shell=bash
# shellcheck disable=SC2004,SC2119,SC2120
# Scripts that hold a lock themselves, for tests of acquire --while-pid. Use `load
# helper/supervision` first.

teardown() {
  local pid
  for pid in $(holders); do kill -KILL "$pid" || true; done
  touch "$BATS_TEST_TMPDIR/end"
  teardown_supervision
}

# The pids of all live holders of this test.
holders() {
  local pid
  for pid in $(processes_named lock-holder); do ! is_alive "$pid" || echo "$pid"; done
}

# Sets HOLDER to the only one; or, with a number, checks that there are so many.
find_holder() {
  HOLDER=$(holders)
  assert_equal "$(wc -w <<<"$HOLDER")" "${1-1}"
}

no_holders() { [[ -z $(holders) ]]; }

# A script that acquires the lock demo for itself, and has a child, one in a session of its own, one
# that ignores TERM and one that is stopped.
# Each writes its pid to $1; all are up when it says `ready`. It ends with 23 when the file $2
# appears. $3… are for acquire.
script() {
  executable script <<'EOF'
#!/bin/bash
pids=$1 end=$2
shift 2
lease=$(redlock-cli acquire -k demo --while-pid $$ --export "$@") || exit
eval "$lease"
note='echo "$BASHPID" >>"$0"; exec sleep 1000'
echo "$$" >"$pids"
bash -c "$note" "$pids" &
setsid bash -c "$note" "$pids" &
bash -c "trap '' TERM; $note" "$pids" &
bash -c "$note" "$pids" &
stopped=$!
until [[ $(wc -l <"$pids") == 5 ]]; do sleep 0.1; done
kill -STOP "$stopped"
echo ready
until [[ -e $end ]]; do sleep 0.2; done
exit 23
EOF
}

declare -gA JOB_PID=()

# start_script NAME OPTION…: runs it; SCRIPT is its pid, TREE all pids, HOLDER the holder process.
start_script() {
  local name=$1
  shift
  start_watched "$name" "$(script)" "$BATS_TEST_TMPDIR/pids" "$BATS_TEST_TMPDIR/end" "$@"
  mapfile -t TREE <"$BATS_TEST_TMPDIR/pids"
}

# start_watched NAME CMD…: runs a script that acquires the lock itself, until it prints `ready`. It
# and its descendants hold the witness.
start_watched() {
  local name=$1
  shift
  start_background "$name" sh -c 'flock -s 9; exec "$@"' - "$@" 9<"$WITNESS"
  wait_for_stdout "$name" ready
  SCRIPT=${BACKGROUND_PID[$name]}
  find_holder
}

# A process whose children run commands for the test, so that it can be named by --while-pid; PET is
# its pid.
start_pet() {
  start_background pet bash -c '
    trap "echo told" TERM
    echo ready
    until [[ -e $0/end ]]; do
      for request in "$0"/request.*; do
        [[ -e $request ]] || continue
        mv "$request" "$0/taken.${request##*.}"
        bash "$0/taken.${request##*.}" &
      done
      sleep 0.1
    done
    exit 5' "$BATS_TEST_TMPDIR"
  wait_for_stdout pet ready
  PET=${BACKGROUND_PID[pet]}
}

# pet_begins NAME CMD…: the pet starts CMD, whose output is in background_stdout and
# background_stderr NAME; JOB_PID[NAME] is its pid.
pet_begins() {
  local name=$1 dir
  shift
  dir=$(mktemp -d "$BATS_TEST_TMPDIR/job.XXXXXX")
  {
    printf '%q ' sh -c 'echo $$ >"$0/pid"; exec env --default-signal=INT,QUIT "$@"' "$dir" "$@"
    printf '</dev/null >%q 2>%q\n' "$dir/job.stdout" "$dir/job.stderr"
    printf 'echo $? >%q\n' "$dir/job.status"
  } >"$dir/request"
  mv "$dir/request" "$BATS_TEST_TMPDIR/request.${dir##*.}"
  wait_until test -s "$dir/pid"
  BACKGROUND_FILES[$name]=$dir/job
  JOB_PID[$name]=$(<"$dir/pid")
}

# pet_ends NAME: waits for the end of that command, and sets $status, $output, $stderr and $lines.
pet_ends() {
  local files=${BACKGROUND_FILES[$1]}
  wait_until test -s "$files.status"
  status=$(<"$files.status")
  output=$(<"$files.stdout")
  stderr=$(<"$files.stderr")
  mapfile -t lines <<<"$output"
}

# by_pet CMD…: the pet runs CMD, as if it were run here.
by_pet() {
  local status output stderr lines
  pet_begins job "$@"
  pet_ends job
  cat "${BACKGROUND_FILES[job]}.stdout"
  cat "${BACKGROUND_FILES[job]}.stderr" >&2
  return "$status"
}

# It still runs, and has noticed nothing.
assert_pet_untouched() {
  assert is_alive "$PET"
  touch "$BATS_TEST_TMPDIR/end"
  wait_background pet
  assert_equal "$status $output" "5 ready"
}
