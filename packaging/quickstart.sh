#!/usr/bin/env bash
# From a fresh checkout to a lock that works, in one go: installs what is missing, builds, and shows
# redlock-cli at work without any server; where there is a redis-server, once more with one of its
# own on a private socket. Leaves nothing behind but the build and a small file until the next boot;
# may be run again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. packaging/dependencies.sh

die() {
  echo "quickstart: $*" >&2
  exit 1
}
say() { printf '\n== %s\n' "$*"; }

# Shows a command as one would type it, and runs it.
show() {
  printf '$ redlock-cli'
  printf ' %q' "$@"
  printf '\n'
  "$redlock_cli" "$@"
}

# Copies what the build says to its log, and shows how far it is, on a terminal in one line:
# `[57/117]`.
# shellcheck disable=SC2031  # it only reads log
show_progress() {
  local line end=$'\n'
  [[ ! -t 1 ]] || end=$'\r'
  while IFS= read -r line; do
    printf '%s\n' "$line" >>"$log"
    [[ ! $line =~ ^\[[0-9]+/[0-9]+\] ]] || printf '%s%s' "${BASH_REMATCH[0]}" "$end"
  done
  [[ $end == $'\n' ]] || echo
}

dir=
server_pid=
holder_pid=
# Ends a process of ours, if there is one; by force if it takes more than ten seconds.
end() {
  local tries
  [[ -n $1 ]] || return 0
  kill "$1" 2>/dev/null || true
  for ((tries = 0; tries < 200; ++tries)); do
    kill -0 "$1" 2>/dev/null || break
    sleep 0.05
  done
  kill -KILL "$1" 2>/dev/null || true
  wait "$1" 2>/dev/null || true
}
clean_up() {
  [[ -z $dir ]] || : >"$dir/enough"
  end "$holder_pid"
  end "$server_pid"
  [[ -z $dir ]] || rm -rf "$dir"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Waits up to ten seconds for the condition, as long as process PID lives.
wait_for() {
  local what=$1 pid=$2 tries
  shift 2
  for ((tries = 0; tries < 200; ++tries)); do
    if "$@" >/dev/null 2>&1; then return; fi
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.05
  done
  die "$what"
}

say "Packages"
ensure_packages "${BUILD_PACKAGES[@]}" || exit
echo "everything needed is installed"

say "Build (a minute or two the first time)"
mkdir -p build
log=build/quickstart.log
# Without the tests: they need more packages than the program does.
cmake --preset release -DBUILD_TESTING=OFF >"$log" 2>&1 || die "configuring failed; see $log"
began=$SECONDS
NINJA_STATUS='[%f/%t] ' cmake --build --preset release 2>&1 | show_progress ||
  die "building failed; see $log"
redlock_cli=$PWD/build/release/src/redlock-cli
[[ -x $redlock_cli ]] || die "the build made no ${redlock_cli#"$PWD"/}"
echo "built ${redlock_cli#"$PWD"/} in $((SECONDS - began)) seconds"

dir=$(mktemp -d /tmp/redlock-quickstart.XXXXXX)
# Another quickstart beside this one has another lock.
key=demo-$$

# The demonstration has none of the caller's settings or leases.
for variable in "${!REDLOCK_@}"; do unset "$variable"; done
unset REDISCLI_AUTH

say "No server is needed for locks on this host"
export REDLOCK_SERVER=local:
if ! "$redlock_cli" status -k "$key" >/dev/null 2>&1; then
  mkdir -m 700 "$dir/locks"
  REDLOCK_SERVER=local:$dir/locks
  echo "/run/lock cannot be used here, so the locks are in a directory of this script"
fi
echo "REDLOCK_SERVER=$REDLOCK_SERVER"

say "A command that runs while it holds the lock \"$key\""
# shellcheck disable=SC2016  # for the inner shell
command='
  echo "the command runs: key $REDLOCK_KEY, fence $REDLOCK_FENCE"
  : >"$0/held"
  until [ -e "$0/enough" ]; do sleep 0.05; done
  echo "the command is done"'
printf '$ redlock-cli run -k %s -- sh -c %s &\n' "$key" \
  "'echo \"key \$REDLOCK_KEY, fence \$REDLOCK_FENCE\"; …'"
"$redlock_cli" run -k "$key" -- sh -c "$command" "$dir" &
holder_pid=$!
wait_for "the command did not get the lock" "$holder_pid" test -e "$dir/held"

say "Who holds it?"
show status -k "$key" || die "status failed with exit status $?"

say "A second command, which does not wait (-n)"
status=0
show run -k "$key" -n -- echo "this must not be seen" || status=$?
((status == 75)) || die "the second command should have exited with 75 (busy), not $status"
echo "exit status 75: busy; the second command did not run"

say "The command ends, and the lock with it"
: >"$dir/enough"
status=0
wait "$holder_pid" || status=$?
holder_pid=
((status == 0)) || die "run exited with $status instead of the command's own 0"
show status -k "$key" --exit-code || die "the lock is still held after its command ended"
echo "exit status 0; the lock is free"

if command -v redis-server >/dev/null && command -v redis-cli >/dev/null; then
  say "The same with a Redis: here one of our own, on a private socket, in memory only"
  socket=$dir/redis.sock
  redis-server --port 0 --unixsocket "$socket" --unixsocketperm 700 --save '' --appendonly no \
    --daemonize no \
    --dir "$dir" --logfile "$dir/redis.log" &
  server_pid=$!
  wait_for "redis-server did not start: $(tail -n 1 "$dir/redis.log" 2>/dev/null)" "$server_pid" \
    redis-cli -s "$socket" ping
  # shellcheck disable=SC2016  # for the inner shell
  show run -S "unix://$socket" -k "$key" -- sh -c 'echo "key $REDLOCK_KEY, fence $REDLOCK_FENCE"' ||
    die "run failed with exit status $?"
fi

say "It works. The program is ${redlock_cli#"$PWD"/}; README.md tells how to install it"
cat <<'END'
Where the locks are kept is your choice:
  redlock-cli run -S local: -k KEY -- COMMAND                 on this host, without a server
  redlock-cli run -S redis://host:6379 -k KEY -- COMMAND      at a Redis or Valkey, for all hosts
                                                              that reach it
  redlock-cli run -S redis://a -S redis://b -S redis://c …    at a quorum of independent ones
  export REDLOCK_SERVER=redis://host:6379                     the same for this shell
  /etc/redlock-cli.toml:  server = "redis://host:6379"        for cron, sudo and all users
END
