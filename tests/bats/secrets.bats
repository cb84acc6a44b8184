#!/usr/bin/env bats
# bats file_tags=smoke
# Tokens and passwords: never in argv, never in a message; and the ways to log in.
load helper/common

PASSWORD='s3cr3t/p@ss:wörd %41'
ENCODED='s3cr3t%2Fp%40ss%3Aw%C3%B6rd%20%2541'

# A server with the password for every user, and one with the user alice; both without a password in
# SERVERS.
setup() {
  common_setup
  # On a busy machine a single attempt needs as much time as the default ttl allows.
  export REDLOCK_SERVER_TIMEOUT=4s
  start_tcp_server --requirepass "$PASSWORD"
  start_tcp_server --user default off --user alice on ">$PASSWORD" '~*' '&*' +@all
  WITH_PASSWORD=redis://:$ENCODED@127.0.0.1:${SERVER_PORT[0]}
  WITH_USER=redis://alice:$ENCODED@127.0.0.1:${SERVER_PORT[1]}
}

# ask I CMD…: redis-cli with the right login.
ask() {
  local i=$1 user=(default alice)
  shift
  redis "$i" --user "${user[i]}" --pass "$PASSWORD" --no-auth-warning "$@"
}

# Every spelling of the password and every token that was issued.
SECRETS=()

# keeps_secrets TEXT WHAT: TEXT contains no secret.
keeps_secrets() {
  local secret
  for secret in "$PASSWORD" "$ENCODED" s3cr3t "${SECRETS[@]}"; do
    [[ -n $secret ]] || fail "a secret is empty, and would be found in anything"
    [[ $1 != *"$secret"* ]] || fail "$2 shows $secret: $1"
  done
}

# quiet CODE CMD…: CMD exits with CODE and shows no secret on stderr.
quiet() {
  local code=$1
  shift
  run --separate-stderr "$@"
  [[ $status == "$code" ]] || fail "status $status instead of $code: $* says: $stderr"
  keeps_secrets "$stderr" "stderr of $*"
}

# --- nothing is shown ---

@test "no command shows a token or a password, however much it says" {
  export REDLOCK_SERVER=$WITH_PASSWORD REDLOCK_VERBOSE=9
  local token lease
  quiet 0 redlock-cli acquire -k demo -t 60s -vv
  token=$output
  SECRETS+=("$token")
  quiet 75 redlock-cli acquire -k demo -t 60s -n
  keeps_secrets "$output" stdout
  quiet 75 redlock-cli acquire -k demo -t 60s -n --json
  keeps_secrets "$output" stdout
  quiet 75 redlock-cli run -k demo -n -- true
  quiet 75 redlock-cli run -k demo -n --json -- true
  quiet 75 redlock-cli run -k demo -w 300ms -- true
  quiet 0 redlock-cli status -k demo
  keeps_secrets "$output" stdout
  quiet 0 redlock-cli status --json
  keeps_secrets "$output" stdout
  quiet 0 env REDLOCK_TOKEN="$token" redlock-cli extend -k demo -t 60s
  quiet 0 env REDLOCK_TOKEN="$token" redlock-cli extend -k demo -t 60s --json
  keeps_secrets "$output" stdout
  quiet 0 env REDLOCK_TOKEN="$token" redlock-cli release -k demo --json
  keeps_secrets "$output" stdout
  quiet 0 env REDLOCK_TOKEN="$token" redlock-cli release -k demo
  quiet 79 env REDLOCK_TOKEN="$token" redlock-cli extend -k demo -t 60s
  quiet 0 redlock-cli acquire -k demo -t 60s --token-file "$BATS_TEST_TMPDIR/lease"
  token=$(ask 0 get demo)
  SECRETS+=("$token")
  quiet 78 redlock-cli release --token-file "$BATS_TEST_TMPDIR/lease" -S "${SERVER_URL[1]}"
  quiet 64 redlock-cli release --token-file "$BATS_TEST_TMPDIR/lease" -k other
  quiet 0 redlock-cli release -k demo --force
  keeps_secrets "$output" stdout
  quiet 79 redlock-cli release --token-file "$BATS_TEST_TMPDIR/lease"
}

@test "run shows neither, whether it works, loses its lock or fails" {
  export REDLOCK_SERVER=$WITH_PASSWORD REDLOCK_VERBOSE=9
  local report=$BATS_TEST_TMPDIR/report
  hold holder -t 9s --server-timeout 1s --json --status-fd 7 7>"$report"
  SECRETS+=("$(ask 0 get demo)")
  local before
  before=$(ask 0 pexpiretime demo)
  extended() { (($(ask 0 pexpiretime demo) > before)); }
  wait_until extended
  release_hold holder
  assert_equal "$status" 0
  keeps_secrets "$stderr" "stderr of run"
  keeps_secrets "$(<"$report")" "the report"
  hold lost -t 9s --server-timeout 1s
  SECRETS+=("$(ask 0 get demo)")
  ask 0 del demo
  wait_background lost
  assert_equal "$status" 79
  keeps_secrets "$stderr" "stderr of run"
  run -127 --separate-stderr redlock-cli run -k demo -- no-such-command
  keeps_secrets "$stderr" "stderr of run"
}

@test "a lease that is wrong is not repeated" {
  export REDLOCK_SERVER=$WITH_PASSWORD
  SECRETS=(deadbeef)
  quiet 64 env REDLOCK_KEY=demo REDLOCK_TOKEN=deadbeef redlock-cli release
  quiet 64 env REDLOCK_LEASE=1.x.deadbeef.ZGVtbw.deadbeef.1 redlock-cli extend -t 60s
  printf "REDLOCK_LEASE='1.x.deadbeef'\n" >"$BATS_TEST_TMPDIR/lease"
  chmod 600 "$BATS_TEST_TMPDIR/lease"
  quiet 78 redlock-cli release --token-file "$BATS_TEST_TMPDIR/lease"
}

@test "an unreachable or refusing server is named without its login" {
  quiet 69 env REDLOCK_SERVER="redis://alice:$ENCODED@127.0.0.1:1" \
    redlock-cli run -k demo -n -vv -- true
  assert_regex "$stderr" "redis://127.0.0.1:1: cannot connect"
  quiet 69 env REDLOCK_SERVER="unix://alice:$ENCODED@/no/such/socket" redlock-cli status -k demo -vv
  keeps_secrets "$output" stdout
  quiet 77 env REDLOCK_SERVER="redis://mallory:$ENCODED@127.0.0.1:${SERVER_PORT[0]}" \
    redlock-cli run -k demo -n -vv -- true
  pause_server 0
  quiet 69 env REDLOCK_SERVER="$WITH_PASSWORD" \
    redlock-cli run -k demo -n -vv --server-timeout 200ms -- true
}

@test "a URL with a password that is wrong in another way is refused without repeating the password" {
  local url
  for url in "redis://alice:$ENCODED@h:port" "redis://alice:$ENCODED@" \
    "redis://alice:$ENCODED@h/x" "redis://alice:s3cr3t%zz@h" "redis://alice:s3cr3t" \
    "alice:$ENCODED@h" "nonsense://alice:$ENCODED@h" "redis:/alice:$ENCODED@h" \
    "redis://:s3cr3t@h:1:2" "unix://alice:s3cr3t@relative" \
    "redis://:s3cr3t@h,redis://:s3cr3t@h" "alice:s3cr3t@redis://h" "redis://h,s3cr3t"; do
    quiet 78 env REDLOCK_SERVER="$url" redlock-cli run -k demo -n -vv -- true
    printf '%s\n' "server = '$url'" >"$BATS_TEST_TMPDIR/config.toml"
    quiet 78 redlock-cli run --config "$BATS_TEST_TMPDIR/config.toml" -k demo -n -vv -- true
  done
}

@test "a broken file with a password in it is refused without repeating the password" {
  local line
  for line in "server = \"$WITH_PASSWORD" "servr = \"$WITH_PASSWORD\"" "server \"$WITH_PASSWORD\"" \
    "[server \"$WITH_PASSWORD\"]" \
    "server = [\"$WITH_PASSWORD\"" "\"$WITH_PASSWORD\" = server"; do
    printf '%s\n' "$line" >"$BATS_TEST_TMPDIR/config.toml"
    run --separate-stderr redlock-cli run --config "$BATS_TEST_TMPDIR/config.toml" -k demo \
      -n -vv -- true
    keeps_secrets "$stderr" "stderr for $line"
  done
}

@test "settings are shown without passwords, even if they are not URLs" {
  local value
  for value in 'redis:/:hunter2@x' 'redis://a:hun,ter2@b,redis://c:hunter2@d' \
    'redis:/:hunter2@a,redis://b' 'hunter2' 'hunter2@h' 'redis://h/hunter2' 'redis://h:hunter2' \
    'redis://h?password=hunter2' 'hunter2://h' 'unix://hunter2' '//:hunter2@h' \
    'sentinel://h/m?sentinel-passwd=hunter2' 'redis://h,hunter2' 'redis://h;hunter2' \
    'redis://hunter2,12@h' 'redis://:hunter2%zz@h' 'local:hunter2' 'redis://h#hunter2'; do
    REDLOCK_SERVER=$value run -0 redlock-cli doctor --settings
    refute_output --partial unter2
    refute_output --partial 'hun,'
    assert_line "server = not shown: not a valid server URL (REDLOCK_SERVER)"
    REDLOCK_SERVER=$value run -0 redlock-cli doctor --settings --json
    refute_output --partial unter2
  done
  for value in 'redis://locker:my hunter2@redis' 'redis://hunter2@redis' \
    'redis://:x@hunter2@redis' 'redis://:a/hunter2@redis' 'VALKEY://:hunter2@redis' \
    $' redis://:hunter2@redis\n'; do
    REDLOCK_SERVER=$value run -0 redlock-cli doctor --settings
    assert_line "server = redis://...@redis:6379 (REDLOCK_SERVER)"
  done
  REDLOCK_SERVER='redis://:hunter2@a,redis://:hunter2@b/2' run -0 redlock-cli doctor --settings
  assert_line 'server = redis://...@a:6379,redis://...@b:6379/2 (REDLOCK_SERVER)'
  REDLOCK_SERVER='sentinel://a,b/m?sentinel-password=hunter2' run -0 redlock-cli doctor --settings
  assert_line 'server = sentinel://...@a:26379,b:26379/m (REDLOCK_SERVER)'
  REDLOCK_SERVER='local:/srv/locks/' run -0 redlock-cli doctor --settings
  assert_line 'server = local:/srv/locks (REDLOCK_SERVER)'
  REDLOCK_NOTE='redis://:hunter2@a' run -0 redlock-cli doctor --settings
  assert_line 'note = redis://...@a:6379 (REDLOCK_NOTE)'
  echo 'server: redis://:hunter2@localhost' >"$BATS_TEST_TMPDIR/config.toml"
  run -78 redlock-cli doctor --settings --config "$BATS_TEST_TMPDIR/config.toml"
  refute_output --partial hunter2
}

# --- argv ---

# in_argv_of PID: the command line of a process.
in_argv_of() { tr '\0' ' ' <"/proc/$1/cmdline"; }

@test "no process that is named redlock-cli has a token or a password in its arguments" {
  export REDLOCK_SERVER=$WITH_USER
  hold holder
  SECRETS+=("$(ask 1 get demo)")
  start_background waiter redlock-cli run -k demo -- true
  start_background exporter redlock-cli acquire -k demo -t 60s --export
  wait_for_stderr waiter "waiting for"
  wait_for_stderr exporter "waiting for"
  local name pid seen=0
  for name in holder waiter exporter; do
    for pid in "${BACKGROUND_PID[$name]}" $(ps -o pid= --ppid "${BACKGROUND_PID[$name]}"); do
      keeps_secrets "$(in_argv_of "$pid")" "argv of $name"
      seen=$((seen + 1))
    done
  done
  assert [ "$seen" -ge 4 ]
}

@test "a password in a URL on the command line is refused and not repeated: 64" {
  local url
  for url in "$WITH_PASSWORD" "$WITH_USER" redis://:s3cr3t@h "unix://u:s3cr3t@/tmp/x" \
    "redis://h,redis://:s3cr3t@g"; do
    quiet 64 redlock-cli run -S "$url" -k demo -n -- true
    assert_regex "$stderr" "password on the command line"
    quiet 64 redlock-cli acquire "-S$url" -k demo -n -t 60s
    quiet 64 redlock-cli status "--server=$url"
    quiet 64 redlock-cli extend --server "$url" -t 60s
    quiet 64 redlock-cli release -S redis://ok -S "$url"
  done
  # A user alone is no secret.
  quiet 77 env REDISCLI_AUTH=wrong \
    redlock-cli status -S "redis://alice@127.0.0.1:${SERVER_PORT[1]}" -k demo
}

@test "a wrong command line is refused without repeating a password in it" {
  local url=$WITH_USER
  quiet 64 redlock-cli run -k demo -s "$url" -- true
  quiet 64 redlock-cli run -k demo -S "$url" true
  quiet 64 redlock-cli run -k demo "-S$url" true
  quiet 64 redlock-cli run -k demo "--server=$url" true
  quiet 64 redlock-cli run -k demo -S "$url,$url" true
  quiet 64 redlock-cli run -k demo "$url" -- true
  quiet 64 redlock-cli run -k demo "--servr=$url" -- true
  quiet 64 redlock-cli run -k demo --servr "$url" -- true
  quiet 64 redlock-cli status "$url"
  quiet 64 redlock-cli "$url"
  local words
  for words in "$url" "--server=$url status" "-S$url status"; do
    # shellcheck disable=SC2086  # words
    quiet 64 redlock-cli $words --json
    keeps_secrets "$output" "stdout of $words --json"
    assert_regex "$output" '"result":"usage"'
  done
  quiet 64 redlock-cli REDIS:/s3cr3t
  quiet 64 redlock-cli valkey:/s3cr3t
  quiet 64 redlock-cli acquire -S redis://h -k demo -t "$url"
  quiet 64 redlock-cli acquire -S redis://h -k demo -t 60s -E "$url"
  quiet 64 redlock-cli run -k demo "-q=$url" -- true
  quiet 64 redlock-cli run -k demo "--quiet=$url" -- true
}

# --- logging in ---

@test "a password, or a user and a password, in the URL of a variable or a file log in" {
  REDLOCK_SERVER=$WITH_PASSWORD run -0 redlock-cli run -k demo -- true
  REDLOCK_SERVER=$WITH_USER run -0 redlock-cli run -k demo -- true
  REDLOCK_SERVER=$WITH_USER,$WITH_PASSWORD run -0 redlock-cli run -k demo -- true
  REDLOCK_SERVER=redis://default:$ENCODED@127.0.0.1:${SERVER_PORT[0]} run -0 \
    redlock-cli run -k demo -- true
  REDLOCK_SERVER=unix://alice:$ENCODED@${SERVER_SOCKET[1]} run -0 redlock-cli run -k demo -- true
  # Characters that were not encoded work as long as the last @ is the one before the host.
  REDLOCK_SERVER="redis://alice:${PASSWORD/\%41/%2541}@127.0.0.1:${SERVER_PORT[1]}" run -0 \
    redlock-cli run -k demo -- true
  printf '%s\n' "server = '$WITH_USER'" >"$BATS_TEST_TMPDIR/config.toml"
  run -0 redlock-cli run --config "$BATS_TEST_TMPDIR/config.toml" -k demo -- true
}

@test "REDISCLI_AUTH and --password-file log in, with --user or the user in the URL" {
  local file=$BATS_TEST_TMPDIR/password
  printf '%s\nsecond line\n' "$PASSWORD" >"$file"
  REDISCLI_AUTH=$PASSWORD run -0 redlock-cli run -S "${SERVER_URL[0]}" -k demo -- true
  REDISCLI_AUTH=$PASSWORD run -0 redlock-cli run -S "${SERVER_URL[1]}" --user alice -k demo -- true
  REDISCLI_AUTH=$PASSWORD run -0 \
    redlock-cli run -S "redis://alice@127.0.0.1:${SERVER_PORT[1]}" -k demo -- true
  run -0 redlock-cli run -S "${SERVER_URL[0]}" --password-file "$file" -k demo -- true
  run -0 redlock-cli run -S "${SERVER_URL[1]}" --user alice --password-file "$file" -k demo -- true
  # The nearest wins: URL, then file, then REDISCLI_AUTH.
  REDISCLI_AUTH=wrong run -0 \
    redlock-cli run -S "${SERVER_URL[0]}" --password-file "$file" -k demo -- true
  REDISCLI_AUTH=wrong REDLOCK_SERVER=$WITH_PASSWORD run -0 redlock-cli run -k demo -- true
  printf '%s' "$PASSWORD" >"$file"
  run -0 redlock-cli run -S "${SERVER_URL[0]}" --password-file "$file" -k demo -- true
}

@test "a password that changes at the server and in its file ends neither a run nor a wait" {
  local file=$BATS_TEST_TMPDIR/password
  printf '%s\n' "$PASSWORD" >"$file"
  export REDLOCK_SERVER=${SERVER_URL[0]} REDLOCK_PASSWORD_FILE=$file
  hold holder -t 30s
  start_background waiter redlock-cli run -k demo -- echo ran
  wait_for_stderr waiter "waiting for demo"
  printf 'n3w\r\n' >"$file"
  ask 0 config set requirepass n3w
  PASSWORD=n3w ask 0 client kill type normal skipme yes
  PASSWORD=n3w ask 0 client kill type pubsub
  run -0 redlock-cli status -k demo
  release_hold holder
  assert_equal "$status" 0
  wait_background waiter
  assert_equal "$status $output" "0 ran"
}

@test "a wait bears a refused login until the new password is in its file, for --unavailable-wait" {
  local file=$BATS_TEST_TMPDIR/password
  printf '%s\n' "$PASSWORD" >"$file"
  export REDLOCK_SERVER=${SERVER_URL[0]} REDLOCK_PASSWORD_FILE=$file
  ask 0 set demo theirs
  start_background waiter redlock-cli run -k demo --unavailable-wait 5m -- echo ran
  start_background short redlock-cli run -k demo --unavailable-wait 100ms -- echo ran
  wait_for_stderr waiter "waiting for demo"
  wait_for_stderr short "waiting for demo"
  ask 0 config set requirepass n3w
  PASSWORD=n3w ask 0 client kill type normal skipme yes
  PASSWORD=n3w ask 0 client kill type pubsub
  wait_background short
  assert_equal "$status" 77
  wait_for_stderr waiter "denied"
  printf 'n3w\n' >"$file"
  PASSWORD=n3w ask 0 del demo
  wait_background waiter
  assert_equal "$status $output" "0 ran"
}

@test "a password from a pipe is read once, and serves each connection" {
  export REDLOCK_SERVER=${SERVER_URL[0]}
  mkfifo "$BATS_TEST_TMPDIR/pipe"
  printf '%s\n' "$PASSWORD" >"$BATS_TEST_TMPDIR/pipe" &
  hold holder -t 30s --password-file "$BATS_TEST_TMPDIR/pipe"
  local before
  before=$(ask 0 pexpiretime demo)
  ask 0 client kill type normal skipme yes
  wait_until eval '(($(ask 0 pexpiretime demo) > before))'
  release_hold holder
  assert_equal "$status" 0
}

@test "every command logs in" {
  export REDLOCK_SERVER=$WITH_USER
  eval "$(redlock-cli acquire -k demo -t 60s --export)"
  run -0 redlock-cli extend -t 60s
  run -0 redlock-cli status -k demo
  run -0 redlock-cli status
  assert_line --regexp '^demo +held '
  run -0 redlock-cli release
  run -0 redlock-cli release -k demo --force
}

# The number of connections that server I has accepted so far, including that of this query.
connections_at() {
  ask "$1" info stats | sed -n 's/^total_connections_received:\([0-9]*\).*/\1/p'
}

# denied I WORD…: redlock-cli WORD… is denied by server I, and does not retry. The attempt, its
# immediate undo and the undo in the background make a connection each.
denied() {
  local server=$1 before
  shift
  before=$(connections_at "$server")
  quiet 77 "$@"
  assert_in_range "$(connections_at "$server")" "$((before + 2))" "$((before + 1 + 2 * 3))"
}

@test "a wrong login is denied: 77, at once and not retried" {
  local login nr
  local -x REDLOCK_SERVER
  for login in "0 :wrong" "0 bob:$ENCODED" "1 alice:wrong" "1 :$ENCODED"; do
    nr=${login%% *}
    REDLOCK_SERVER=redis://${login#* }@127.0.0.1:${SERVER_PORT[nr]}
    denied "$nr" redlock-cli run -k demo -- true
    assert_regex "$stderr" "denied: redis://127.0.0.1:"
    denied "$nr" redlock-cli acquire -k demo -t 60s
    denied "$nr" redlock-cli status -k demo
    denied "$nr" redlock-cli release -k demo --force
    denied "$nr" env REDLOCK_TOKEN=0123456789abcdef0123456789abcdef redlock-cli release -k demo
    denied "$nr" env REDLOCK_TOKEN=0123456789abcdef0123456789abcdef \
      redlock-cli extend -k demo -t 60s
  done
}

@test "a disabled default user leads to --user, not to another password" {
  REDISCLI_AUTH=$PASSWORD quiet 77 redlock-cli run -S "${SERVER_URL[1]}" -k demo -n -- true
  assert_regex "$stderr" "or the user is off; --user names another than the default user"
  ask 1 acl setuser default nopass
  REDISCLI_AUTH=$PASSWORD quiet 77 redlock-cli run -S "${SERVER_URL[1]}" -k demo -n -- true
  assert_regex "$stderr" "its default user is off: name another user with --user"
  refute_regex "$stderr" "has no password"
  quiet 77 redlock-cli run -S "${SERVER_URL[1]}" -k demo -n -- true
  assert_regex "$stderr" "and --user if its default user is off"
}

@test "one wrong login of three costs one vote, two cost the quorum" {
  start_server
  REDLOCK_SERVER=redis://:wrong@127.0.0.1:${SERVER_PORT[0]},$WITH_USER,${SERVER_URL[2]} quiet 0 \
    redlock-cli run -k demo -- true
  REDLOCK_SERVER=redis://:wrong@127.0.0.1:${SERVER_PORT[0]},\
redis://x:wrong@127.0.0.1:${SERVER_PORT[1]},${SERVER_URL[2]} \
    quiet 77 redlock-cli run -k demo -n -- true
  assert_unlocked demo 2
}

@test "a password for a server without one is denied, not ignored" {
  start_server
  quiet 77 env REDLOCK_SERVER="${SERVER_URL[2]/\/\//\/\/:needless@}" \
    redlock-cli run -k demo -n -- true
  echo needless >"$BATS_TEST_TMPDIR/password"
  quiet 77 redlock-cli run -S "${SERVER_URL[2]}" --password-file "$BATS_TEST_TMPDIR/password" \
    -k demo -n -- true
  assert_regex "$stderr" "a password was given \\(.*--password-file.*\\), but the server has none"
  quiet 77 env REDISCLI_AUTH=needless \
    redlock-cli run -S "${SERVER_URL[2]}" --user no-such-user -k demo -n -- true
}

@test "REDISCLI_AUTH and a server without a password: one line, and the lock, as redis-cli does" {
  start_server
  start_server
  REDISCLI_AUTH=needless run -0 --separate-stderr \
    redlock-cli run -S "${SERVER_URL[2]},${SERVER_URL[3]}" -k demo -n -- echo ran
  assert_equal "$output" ran
  assert_regex "$stderr" \
    "^redlock-cli: unix:///[^ ]* has no password, so REDISCLI_AUTH is not used$"
  REDISCLI_AUTH=needless run -0 --separate-stderr \
    redlock-cli run -q -S "${SERVER_URL[2]}" -k demo -n -- true
  assert_equal "$stderr" ""
  # A password that is a word of the server's answer.
  REDISCLI_AUTH=password run -0 redlock-cli run -S "${SERVER_URL[2]}" -k demo -n -- true
}

@test "a byte order mark and line ends around a password are not part of it" {
  local file=$BATS_TEST_TMPDIR/password before after
  for before in '' $'\xef\xbb\xbf'; do
    for after in '' $'\n' $'\r\n' $'\r'; do
      printf '%s' "$before$PASSWORD$after" >"$file"
      run -0 redlock-cli run -S "${SERVER_URL[0]}" --password-file "$file" -k demo -- true
      REDISCLI_AUTH=$before$PASSWORD$after run -0 \
        redlock-cli run -S "${SERVER_URL[0]}" -k demo -- true
    done
  done
}

@test "a password file without an end is refused, not read" {
  quiet 64 prlimit --as=200000000 redlock-cli run -S "${SERVER_URL[0]}" \
    --password-file /dev/zero -k demo -n -- true
  assert_regex "$stderr" \
    "cannot read a password from /dev/zero: its first line is too long"
}

@test "a password file that cannot be read is an error that says why, and never no password" {
  quiet 64 redlock-cli run -S "${SERVER_URL[0]}" --password-file /no/such/file -k demo -n -- true
  assert_regex "$stderr" "/no/such/file: no such file or directory$"
  quiet 64 redlock-cli run -S "${SERVER_URL[0]}" --password-file "$BATS_TEST_TMPDIR" \
    -k demo -n -- true
  assert_regex "$stderr" ": is a directory$"
  : >"$BATS_TEST_TMPDIR/empty"
  quiet 64 redlock-cli run -S "${SERVER_URL[0]}" --password-file "$BATS_TEST_TMPDIR/empty" \
    -k demo -n -- true
  assert_regex "$stderr" "/empty: it is empty$"
}

@test "neither file nor URL passwords reach the command's environment" {
  printf '%s\n' "server = '$WITH_USER'" >"$BATS_TEST_TMPDIR/config.toml"
  run -0 --separate-stderr redlock-cli run --config "$BATS_TEST_TMPDIR/config.toml" -k demo -- env
  keeps_secrets "$output" "the command's environment"
  printf '%s\n' "$PASSWORD" >"$BATS_TEST_TMPDIR/password"
  run -0 --separate-stderr redlock-cli run -S "${SERVER_URL[0]}" \
    --password-file "$BATS_TEST_TMPDIR/password" -k demo -- env
  keeps_secrets "$output" "the command's environment"
}
