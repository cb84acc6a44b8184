# shellcheck shell=bash
# The base of every bats file; begin it with `load helper/common`, which also loads redis.bash,
# locks.bash and checks.bash.
#
# Each test gets a HOME of its own and none of the caller's settings; `redlock-cli` in PATH is the
# binary under test, which REDLOCK_CLI names. Whatever a test starts through these helpers is ended
# by its pid when the test ends, passed or failed.
# A file with a setup() or teardown() of its own calls common_setup and common_teardown there.

bats_require_minimum_version 1.5.0
# Without bats_load_library, because their own load.bash starts a process for each of their files in
# each test.
for library_file in "${BATS_LIB_PATH:=/usr/lib/bats}"/bats-{support,assert}/src/*.bash; do
  # shellcheck source=/dev/null
  source "$library_file"
done
unset library_file

# Builtins of the package bash-builtins, if installed: a program takes a hundred times as long, and
# bats itself calls some of these for each test. Their -m applies the umask and has no sticky bit:
# use chmod.
for builtin in mkdir mkfifo mktemp rm; do enable -f "$builtin" "$builtin" 2>/dev/null || true; done
unset builtin

# When a test began, as bats notes it for each test; without date(1).
get_mills_since_epoch() {
  local now=${EPOCHREALTIME/[.,]/}
  echo "${now%???}"
}

# Replacements for some of bats' own functions, made once for all tests of the run.
# bats records the place of each command in a debug trap, so that a failure is shown at the line of
# its test. Only places in the test's file count, but bats takes twenty commands to find that out
# for each command of a helper or a library.
changed=$BATS_RUN_TMPDIR/changed.bash
if [[ ! -e $changed ]]; then
  {
    declare -f bats_debug_trap | sed '2a [[ $1 == "$BATS_TEST_SOURCE" ]] || return 0'
    declare -f run | sed '1s/run/bats_run/'
  } >"$changed.$BASHPID"
  mv "$changed.$BASHPID" "$changed"
fi
# shellcheck source=/dev/null
source "$changed"
unset changed

# Within `run` even that takes longer than most of our commands, so it is disabled there.
run() {
  local -
  set +T
  bats_run "$@"
}

# How long a helper waits for anything, in seconds, before it fails and names it.
WAIT_LIMIT=20

# By the name given to start_background: the pid, and the prefix of its files' names.
declare -gA BACKGROUND_PID=() BACKGROUND_FILES=()
BACKGROUND_COUNT=0

setup() { common_setup; }
teardown() { common_teardown; }

common_setup() {
  local -
  set +T
  isolate_environment
  find_binary
}

common_teardown() {
  local -
  set +T
  end_background
  end_servers
}

# None of the caller's settings reaches the test: HOME and REDLOCK_* are only what is set here
# (REDLOCK_CLI becomes a plain shell variable).
isolate_environment() {
  local variable
  export -n REDLOCK_CLI
  unset BASH_ENV # bats_env.bash is for bats itself
  for variable in "${!REDLOCK_@}"; do
    [[ $variable == REDLOCK_CLI ]] || unset "$variable"
  done
  unset REDISCLI_AUTH NO_COLOR NOTIFY_SOCKET
  # The variables that name a CI job.
  unset "${!GITHUB_@}" "${!CI_@}" "${!BUILDKITE_@}" "${!CIRCLE_@}" "${!SYSTEM_@}" "${!DRONE_@}" \
    BUILD_URL BUILD_BUILDID JENKINS_URL
  # A test's servers have just been started: with the guard none of three would have a vote for a
  # minute. Tests of the guard set it themselves.
  export REDLOCK_RESTART_GUARD=0
  export HOME=$BATS_TEST_TMPDIR/home
  export XDG_CONFIG_HOME=$HOME/.config
  export LC_ALL=C.UTF-8
  mkdir -p "$XDG_CONFIG_HOME"
}

# Puts the binary under test first in PATH.
find_binary() {
  : "${REDLOCK_CLI:=$BATS_TEST_DIRNAME/../../build/dev/src/redlock-cli}"
  [[ $REDLOCK_CLI == /* ]] || REDLOCK_CLI=$PWD/$REDLOCK_CLI
  if [[ ! -x $REDLOCK_CLI ]]; then
    echo "no program at $REDLOCK_CLI: build it, or name it in REDLOCK_CLI" >&2
    return 1
  fi
  PATH=${REDLOCK_CLI%/*}:$PATH
}

# Skips a test that changes libc by a preloaded library, if the program has libc inside.
needs_shared_libc() {
  local headers
  headers=$(readelf --wide --program-headers "$REDLOCK_CLI")
  [[ $headers == *INTERP* ]] || skip "libc is linked in: nothing can be preloaded"
}

# executable NAME: a file for a command that a test makes, from stdin; prints its path.
executable() {
  local path=$BATS_TEST_TMPDIR/$1
  cat >"$path"
  chmod +x "$path"
  echo "$path"
}

# wait_until CONDITION…: runs the command until it succeeds; fails after WAIT_LIMIT seconds, and
# prints the condition.
wait_until() {
  local -
  set +T
  local end=$((SECONDS + WAIT_LIMIT + 1)) said=$BATS_TEST_TMPDIR/wait_until pause=20
  until "$@" >"$said" 2>&1; do
    if ((SECONDS >= end)); then
      {
        echo "wait_until: not within $WAIT_LIMIT seconds: $*"
        sed 's/^/  it said: /' "$said"
      } >&2
      return 1
    fi
    nap "$pause"
    # Poll less often after a while: a check costs more than a late result.
    pause=$((pause < 150 ? pause * 3 / 2 : pause))
  done
}

# nap MILLISECONDS: sleeps for less than a second without a process, by reading a pipe to which no
# process writes.
nap() {
  local silent=$BATS_FILE_TMPDIR/silent seconds
  [[ -p $silent ]] || mkfifo "$silent"
  printf -v seconds '0.%03d' "$1"
  read -rt "$seconds" <>"$silent" || true
}

# start_background NAME CMD…: runs CMD beside the test, with stdin from /dev/null, and records its
# pid in BACKGROUND_PID[NAME].
# Unlike after a plain `&` it does not ignore INT and QUIT. What it writes goes to background_stdout
# and background_stderr NAME.
start_background() {
  local name=$1 files
  shift
  if [[ -v BACKGROUND_PID[$name] ]]; then
    echo "start_background: there is a \"$name\" already" >&2
    return 1
  fi
  files=$BATS_TEST_TMPDIR/background.$((++BACKGROUND_COUNT))
  # A function can't be run through env.
  [[ $(type -t "$1") != file ]] || set -- env --default-signal=INT,QUIT "$@"
  "$@" </dev/null >"$files.stdout" 2>"$files.stderr" 3>&- &
  BACKGROUND_PID[$name]=$!
  BACKGROUND_FILES[$name]=$files
  # Before that, a signal could have it run this shell's EXIT trap, which reports the test.
  until [[ -e $files.stderr ]]; do nap 5; done
}

# The files with its output so far.
background_stdout() { echo "${BACKGROUND_FILES[$1]}.stdout"; }
background_stderr() { echo "${BACKGROUND_FILES[$1]}.stderr"; }

# wait_for_stdout NAME [TEXT], wait_for_stderr NAME [TEXT]: until it has written TEXT, or anything.
wait_for_stdout() { wait_until has_written "${BACKGROUND_FILES[$1]}.stdout" "${2-}"; }
wait_for_stderr() { wait_until has_written "${BACKGROUND_FILES[$1]}.stderr" "${2-}"; }

# wait_background NAME: waits for its end, at most WAIT_LIMIT seconds, and sets $status, $output and
# $stderr.
# Succeeds whatever the status, like `run`. The name is free again afterwards.
wait_background() {
  local name=$1 pid=${BACKGROUND_PID[$1]}
  if ! wait_until background_has_ended "$name"; then
    sed 's/^/  its stderr: /' "$(background_stderr "$name")" >&2
    # Show what may keep it: its children, and theirs. Or bash may have missed its end.
    jobs -l >"$BATS_TEST_TMPDIR/jobs"
    {
      ps -e --forest -o pid,ppid,stat,wchan:20,args | grep -A 4 "^ *$pid " || echo "it has ended"
      cat "$BATS_TEST_TMPDIR/jobs"
    } | sed 's/^/  /' >&2
    return 1
  fi
  status=0
  wait "$pid" || status=$?
  output=$(<"${BACKGROUND_FILES[$name]}.stdout")
  stderr=$(<"${BACKGROUND_FILES[$name]}.stderr")
  mapfile -t lines <<<"$output"
  unset "BACKGROUND_PID[$name]"
}

# has_written FILE TEXT: like grep, but without a process.
has_written() {
  local text=()
  mapfile -t text <"$1"
  [[ -n ${text[*]} && ${text[*]} == *"$2"* ]]
}

# has_ended PID: the process, a child of ours or not, has ended.
has_ended() { ! kill -0 "$1" 2>/dev/null; }

# processes_named NAME: the pids of this test's processes of that name, found by its private HOME.
processes_named() {
  local processes process
  # grep also fails for a process that has ended meanwhile.
  processes=$(grep -slx "$1" /proc/[0-9]*/comm) || true
  [[ -n $processes ]] || return 0
  # shellcheck disable=SC2086
  for process in $(grep -slzxF "HOME=$HOME" ${processes//comm/environ}); do
    echo "${process//[^0-9]/}"
  done
}

background_has_ended() { ! is_running_child "${BACKGROUND_PID[$1]}"; }

# Whether PID is a child of this shell that has not ended. A pid that bash has reaped may belong to
# any process by now: never signal it.
is_running_child() {
  local state
  is_job "$1" || return 1
  # Otherwise bash has noticed its end meanwhile.
  read -r state 2>/dev/null <"/proc/$1/stat" || return 1
  [[ $state == *") Z "* ]] || return 0
  # bash has not noticed its end; it does so when it waits for any child.
  (:)
  is_job "$1"
}

# Whether bash still lists PID as a running child.
is_job() {
  local pids
  # Through a file, as $(…) would be a process.
  { jobs -rp && jobs -sp; } >"$BATS_TEST_TMPDIR/jobs"
  mapfile -t pids <"$BATS_TEST_TMPDIR/jobs"
  local IFS=' '
  [[ " ${pids[*]} " == *" $1 "* ]]
}

# end_child PID: sends TERM, and KILL two seconds later if it is still there.
end_child() {
  local pid=$1 tries
  for ((tries = 0; tries < 40; ++tries)); do
    is_running_child "$pid" || break
    ((tries)) || kill -TERM "$pid" 2>/dev/null || true
    kill -CONT "$pid" 2>/dev/null || true
    nap 50
  done
  kill_child "$pid"
}

# kill_child PID: KILL, and reaps it.
kill_child() {
  if is_running_child "$1"; then kill -KILL "$1" 2>/dev/null || true; fi
  # The sink is for bash's own "Killed".
  { wait "$1" || true; } 2>/dev/null
}

end_background() {
  local name
  for name in "${!BACKGROUND_PID[@]}"; do
    end_child "${BACKGROUND_PID[$name]}"
    unset "BACKGROUND_PID[$name]"
  done
}

for helper_file in redis locks checks; do
  # shellcheck source=/dev/null
  source "${BASH_SOURCE[0]%/*}/$helper_file.bash"
done
unset helper_file
