# shellcheck shell=bash
# Real Redis servers for a test: private, empty, in memory only, ended with the test.
#
# Servers are numbered from 0 in the order of their start:
#   SERVER_URL[I]  SERVER_PID[I]  SERVER_SOCKET[I]  SERVER_PORT[I] (empty without TCP), and SERVERS,
#   all URLs as a comma list.
# To be called from a test or its setup(), not through `run` or $(…): a server dies with the shell
# that started it.

SERVER_URL=()
SERVER_PID=()
SERVER_SOCKET=()
SERVER_PORT=()
SERVER_ARGUMENTS=() # a file each, NUL-separated: how to start it again
SERVERS=
SERVER_DIR=
SERVER_PRELOAD=() # a library for server I
SERVER_NET=() # what runs a command in the servers' network, if that is not ours (wire.bash)
# With start_local_store: the directory in place of server 0.
LOCAL_STORE=

# start_servers N [OPTION…]: N servers on unix sockets; options are redis-server's, e.g.
# --requirepass secret. With LATE_SERVER=I in the environment server I of several answers after the
# others.
start_servers() {
  local n=$1 i
  shift
  if [[ $n != 1 && -n ${LATE_SERVER-} ]]; then
    SERVER_PRELOAD[LATE_SERVER]=$(preload late_server) || return
  fi
  for ((i = 0; i < n; ++i)); do start_server "$@" || return; done
}

# start_server [OPTION…]: one more server on a unix socket.
start_server() {
  local i=${#SERVER_PID[@]}
  prepare_server "$i" || return
  SERVER_PORT[i]=
  SERVER_URL[i]=unix://${SERVER_SOCKET[i]}
  printf '%s\0' --port 0 "$@" >"${SERVER_ARGUMENTS[i]}"
  launch_server "$i" && wait_for_server "$i" || return
  join_servers
}

# start_tcp_server [OPTION…]: one more server, on a free port of 127.0.0.1 (its URL) and on a unix
# socket (for `redis`).
start_tcp_server() { start_on_free_port redis --port --bind 127.0.0.1 "$@"; }

# start_on_free_port SCHEME PORT-OPTION [OPTION…]: one more server, on a free port of 127.0.0.1,
# which PORT-OPTION sets (its URL has the SCHEME), and on a unix socket.
start_on_free_port() {
  local scheme=$1 port_option=$2 i=${#SERVER_PID[@]} tries
  shift 2
  prepare_server "$i" || return
  for ((tries = 0; tries < 20; ++tries)); do
    # If the port is taken, the server ends at once.
    SERVER_PORT[i]=$(random_port)
    SERVER_URL[i]=$scheme://127.0.0.1:${SERVER_PORT[i]}
    printf '%s\0' "$port_option" "${SERVER_PORT[i]}" "$@" >"${SERVER_ARGUMENTS[i]}"
    launch_server "$i" || return
    if wait_for_server "$i" 2>/dev/null; then
      join_servers
      return
    fi
    kill_child "${SERVER_PID[i]}"
  done
  echo "start_on_free_port: no free port in $tries tries: $(tail -n 1 "$SERVER_DIR/$i.log")" >&2
  return 1
}

# start_local_store: a directory for local: in place of server 0. The program local-redis, built
# with the tests, takes the place of redis-cli.
start_local_store() {
  : "${LOCAL_REDIS:=${REDLOCK_CLI%/*}/../tests/local-redis}"
  LOCAL_STORE=$BATS_TEST_TMPDIR/local-store
  mkdir -m 700 "$LOCAL_STORE" || return
  SERVER_URL[0]=local:$LOCAL_STORE
  join_servers
}

# redis I CMD…: queries server I with redis-cli, or with ask-redis, built with the tests, which
# starts faster, but supports neither options nor passwords, and reads no commands from stdin.
redis() {
  local i=$1
  shift
  if [[ -n $LOCAL_STORE ]]; then
    "$LOCAL_REDIS" "$LOCAL_STORE" "$@"
    return
  fi
  if [[ $# == 0 || $1 == -* ]] || ! find_ask_redis; then
    redis-cli -s "${SERVER_SOCKET[i]}" "$@"
  else
    "$ASK_REDIS" "${SERVER_SOCKET[i]}" "$@"
  fi
}

# wait_for_answer I ANSWER CMD…: waits until `redis I CMD…` prints ANSWER; ask-redis retries by
# itself.
wait_for_answer() {
  if [[ -z $LOCAL_STORE ]] && find_ask_redis; then
    "$ASK_REDIS" --until "$2" "$WAIT_LIMIT" "${SERVER_SOCKET[$1]}" "${@:3}" >/dev/null
  else
    wait_until answers "$@"
  fi
}

# The server shuts down as by its administrator: connections are closed, nothing is saved.
stop_server() {
  kill -TERM "${SERVER_PID[$1]}"
  wait_until server_is_down "$1"
  kill_child "${SERVER_PID[$1]}"
}

# The server is killed, and all its data is lost.
kill_server() { kill_child "${SERVER_PID[$1]}"; }

# The server stops answering; its connections stay open, and the kernel still accepts new ones.
pause_server() {
  kill -STOP "${SERVER_PID[$1]}"
  wait_until server_is_paused "$1"
}

resume_server() { kill -CONT "${SERVER_PID[$1]}"; }

# Restarts the server empty, with the same socket, port and options. It may still be running.
restart_server() {
  kill_child "${SERVER_PID[$1]}"
  launch_server "$1" && wait_for_server "$1"
}

# The server only answers BUSY until end_busy. It needs a short --lua-time-limit.
make_busy() {
  start_background "busy$1" redis-cli -s "${SERVER_SOCKET[$1]}" eval 'while true do end' 0
  wait_until says "$1" BUSY ping
}
# The script ends a little later than the answer to SCRIPT KILL.
end_busy() {
  redis "$1" script kill >/dev/null
  wait_until says "$1" PONG ping
}

# says I TEXT CMD…
says() { [[ $(redis "$1" "${@:3}" 2>&1) == *"$2"* ]]; }

wait_for_key() { wait_for_answer "$1" 1 exists "$2"; }
wait_for_no_key() { wait_for_answer "$1" 0 exists "$2"; }

# --- Internals ---

# Unix sockets have paths of at most 107 bytes.
prepare_server() {
  local i=$1
  if [[ -z $SERVER_DIR ]]; then
    if ((${#BATS_TEST_TMPDIR} < 80)); then
      SERVER_DIR=$BATS_TEST_TMPDIR/redis
      mkdir "$SERVER_DIR"
    else
      SERVER_DIR=$(mktemp -d /tmp/rl.XXXXXX)
    fi || return
  fi
  SERVER_SOCKET[i]=$SERVER_DIR/$i.sock
  SERVER_ARGUMENTS[i]=$SERVER_DIR/$i.arguments
}

# Below the range from which the kernel takes ports for outgoing connections and for other tests'
# servers, also with the 10000 more of a cluster's bus: nodes go on calling one that has ended.
random_port() { echo $((12000 + SRANDOM % 10000)); }

# preload NAME: the path of a library made of helper/NAME.c, for SERVER_PRELOAD.
preload() {
  local library=$BATS_TEST_TMPDIR/$1.so
  c++ -x c -shared -fPIC -o "$library" "$BATS_TEST_DIRNAME/helper/$1.c" && echo "$library"
}

# The server dies with this shell, however the shell ends.
launch_server() {
  local i=$1 arguments preload=()
  mapfile -d '' -t arguments <"${SERVER_ARGUMENTS[i]}"
  [[ -z ${SERVER_PRELOAD[i]-} ]] || preload=(env "LD_PRELOAD=${SERVER_PRELOAD[i]}")
  [[ ! -e ${SERVER_SOCKET[i]} ]] || rm "${SERVER_SOCKET[i]}" || return
  : >"$SERVER_DIR/$i.log"
  "${SERVER_NET[@]}" setpriv --pdeathsig KILL "${preload[@]}" redis-server \
    --unixsocket "${SERVER_SOCKET[i]}" --unixsocketperm 700 \
    --save '' --appendonly no --daemonize no --dir "$SERVER_DIR" --logfile "$SERVER_DIR/$i.log" \
    --dbfilename "$i.rdb" \
    "${arguments[@]}" </dev/null >"$SERVER_DIR/$i.out" 2>&1 3>&- &
  SERVER_PID[i]=$!
}

# Waits until the server accepts connections or has ended.
wait_for_server() {
  local i=$1
  wait_until server_is_ready_or_down "$i" || return
  server_is_down "$i" || return 0
  echo "server $i did not start: \
$(tail -qn 1 "$SERVER_DIR/$i.log" "$SERVER_DIR/$i.out" 2>/dev/null)" >&2
  return 1
}

# Reads its log, which takes no process. It is ready only when it listens: if its port is taken it
# ends.
server_is_ready_or_down() {
  has_written "$SERVER_DIR/$1.log" 'eady to accept connections' ||
    has_written "$SERVER_DIR/$1.log" 'Sentinel ID is ' || server_is_down "$1"
}

server_is_down() { ! is_running_child "${SERVER_PID[$1]}"; }

server_is_paused() { [[ $(<"/proc/${SERVER_PID[$1]}/stat") == *') T '* ]]; }

# answers I ANSWER CMD…
answers() { [[ $(redis "$1" "${@:3}") == "$2" ]]; }

has_key() { answers "$1" 1 exists "$2"; }

# Sets ASK_REDIS. Fails if it was not built, or if the servers require a password.
find_ask_redis() {
  ASK_REDIS=${REDLOCK_CLI%/*}/../tests/ask-redis
  [[ -z ${REDISCLI_AUTH-} && -x $ASK_REDIS ]]
}

join_servers() {
  local IFS=,
  SERVERS=${SERVER_URL[*]}
}

end_servers() {
  local pid
  # KILL ends a stopped process too.
  for pid in "${SERVER_PID[@]}"; do kill_child "$pid"; done
  SERVER_PID=()
  [[ $SERVER_DIR != /tmp/rl.* ]] || rm -rf "$SERVER_DIR"
}
