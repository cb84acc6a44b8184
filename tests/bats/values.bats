#!/usr/bin/env bats
# shellcheck disable=SC1003,SC2054,SC2258
# Every kind of value: valid ones are accepted, and all others get one clear message and the right
# exit code.
load helper/common

setup() {
  setup_one_server
  # On a busy machine a single attempt needs as much time as the default ttl allows.
  export REDLOCK_SERVER_TIMEOUT=4s
}

# refuses_each OPTION VALUE…: `run OPTION VALUE` is refused with 64 and the name of the option, and
# nothing runs or is left locked.
refuses_each() {
  local option=$1 value
  shift
  for value; do
    assert_refused 64 "$option" redlock-cli run -k demo "$option" "$value" \
      -- touch "$BATS_TEST_TMPDIR/ran"
  done
  assert [ ! -e "$BATS_TEST_TMPDIR/ran" ]
  assert_equal "$(keys_at 0)" ""
}

# --- durations ---

BAD_DURATIONS=(1e3 -1 +1 5x "" "1 s" " 1s" "1s " 99999999999999999999 99999999999999999999d inf nan
  Infinity -0 0x10 1h30 30m1h 1h1h 1.2.3 1,5s . .s s ms
  5S 5Ms "5 m" 1_000 ½s $'1\n' $'5\e[31ms' '1;')

@test "valid durations are accepted by --ttl with the right length" {
  local row text ms
  unset REDLOCK_SERVER_TIMEOUT
  for row in 500ms=500 1500ms=1500 30s=30000 30=30000 1.5m=90000 2h=7200000 1d=86400000 .5s=500 \
    0.5=500 007s=7000 0.5h=1800000 \
    1.0005s=1000 1h30m=5400000 10min=600000 90sec=90000 2days=172800000 1w=604800000 \
    1m1.5s=61500; do
    text=${row%=*}
    ms=${row#*=}
    run -0 --separate-stderr redlock-cli acquire -k "ttl $text" --ttl "$text" --json \
      --unavailable-wait 1m
    assert_equal "$text: $(json 'j["ttl_ms"]')" "$text: $ms"
    ((ms < 30000)) || assert_in_range "$(redis 0 pttl "ttl $text")" $((ms / 10)) "$ms"
  done
}

@test "valid durations are accepted by --wait" {
  local text
  for text in 500ms 30s 1.5m 2h 1d .5s 0 0s 0ms 0.0 10000d 1h30m 1w infinity; do
    run -0 redlock-cli run -k demo --wait "$text" -- true
    run -0 redlock-cli run -k demo --wait="$text" -- true
  done
}

@test "invalid durations are refused" {
  refuses_each --ttl "${BAD_DURATIONS[@]}"
  refuses_each --wait "${BAD_DURATIONS[@]}"
  refuses_each --grace 5x -1 ""
  refuses_each --server-timeout 5x -1 "" 0
  refuses_each --retry-delay 5x -1 "" 0
  refuses_each --unavailable-wait 5x -1 ""
}

@test "only time limits may be infinite" {
  redis 0 set demo x px 300
  run -0 redlock-cli run -k demo -w infinity --unavailable-wait infinity -- true
  refuses_each --ttl infinity
  refuses_each --grace infinity
  refuses_each --min-hold infinity
  assert_refused 64 "--min-hold: cannot be infinite" \
    redlock-cli run -k demo --min-hold infinity -- true
}

# --- bounds of the ttl ---

# No server listens there: with a ttl this small a server might have no time to answer on a busy
# machine.
NOWHERE=unix:///nonexistent.sock

# min_ttl OPTION…: the smallest ttl in ms that `run OPTION…` names when it refuses one of 1 ms.
min_ttl() {
  unset REDLOCK_SERVER_TIMEOUT
  assert_refused 64 "the smallest that works is" redlock-cli run -k demo "$@" -t 1ms -- true
  [[ $stderr =~ works\ is\ ([0-9]+)ms$ ]]
  smallest=${BASH_REMATCH[1]}
}

@test "a ttl too short to renew in time is refused with the smallest that works, which is accepted" {
  local smallest options
  for options in "" "--grace 1s" "--server-timeout 300ms" "--server-timeout 1s --grace 30s" \
    "--grace 0"; do
    # shellcheck disable=SC2086  # words
    min_ttl $options
    # An accepted value leads to the error that there is no server.
    # shellcheck disable=SC2086
    run -69 redlock-cli run -S "$NOWHERE" -k demo -n $options -t "${smallest}ms" -- true
    # shellcheck disable=SC2086
    assert_refused 64 "${smallest}ms" \
      redlock-cli run -k busy -n $options -t "$((smallest - 1))ms" -- true
  done
}

@test "a ttl that is too short is refused with the settings that make it so" {
  unset REDLOCK_SERVER_TIMEOUT
  assert_refused 64 "--ttl: 1s is too short to renew the lease and to stop the command in time; \
with --server-timeout 1s and --grace 2s the smallest" \
    redlock-cli run -k demo -t 1s --grace 2s --server-timeout 1s -- true
  assert_refused 64 "the default --ttl of 30s is too short to renew the lease and to stop the \
command in time; with --grace 40s the smallest" redlock-cli run -k demo --grace 40s -- true
  assert_refused 64 "is too short to renew the lease in time; the smallest" \
    redlock-cli acquire -k demo -t 1ms
}

@test "a command runs under the smallest ttl" {
  local smallest
  min_ttl --server-timeout 700ms --grace 1s
  run -0 redlock-cli run -k demo --server-timeout 700ms --grace 1s -t "${smallest}ms" -- echo ran
  assert_output ran
}

@test "acquire and extend have a smallest ttl, too" {
  unset REDLOCK_SERVER_TIMEOUT
  assert_refused 64 "the smallest that works is" redlock-cli acquire -k demo -t 1ms
  [[ $stderr =~ works\ is\ ([0-9]+)ms$ ]]
  run -69 redlock-cli acquire -S "$NOWHERE" -k demo -n -t "${BASH_REMATCH[1]}ms"
  eval "$(redlock-cli acquire -k demo -t 60s --export)"
  assert_refused 64 "the smallest that works is" redlock-cli extend -t 1ms
}

@test "a ttl of zero or of centuries is refused, and so are settings for which no ttl is long enough" {
  refuses_each --ttl 0 0s 0.4ms 100000d
  assert_refused 64 "too short" redlock-cli run -k demo --grace 1h -- true
  assert_refused 64 "--ttl" redlock-cli run -k demo --grace 1h -t 30s -- true
  assert_refused 64 "--ttl" redlock-cli run -k demo --grace 100000d -t 30s -- true
}

# --- keys ---

# locks_verbatim KEY: while a command runs, the server has exactly this key; afterwards only the
# counter and the last run.
locks_verbatim() {
  redis 0 flushall >/dev/null
  run -0 --separate-stderr redlock-cli run --key="$1" -- \
    redis-cli -s "$SERVER_SOCKET" exists "$1"
  assert_output 1
  assert_equal \
    "$(redis 0 eval 'return #redis.call("KEYS", "redlock:fence:*")' 0) of $(redis 0 dbsize)" \
    "1 of 2"
  run -0 redlock-cli acquire --key="$1" -t 60s
  run -75 redlock-cli acquire --key="$1" -t 60s -n
  run -75 redlock-cli status --key="$1" --exit-code
  run -0 redlock-cli release --key="$1" --force
}

@test "a key may have any bytes, and is stored unchanged" {
  local key
  for key in x 'a b' $'new\nline' $'\n' $'\x01\xff' $'\xff\xfe\xfd' '{a}b' 'a}b' '{}x' '{' '}' \
    '}{' '{{a}}' 'a{b}c{d}' ' ' '-k' '--help' '*' '"' "'" \
    '\' 'ünï/cödé 🔒' redlock redlock-cli 'Redlock:x'; do
    locks_verbatim "$key"
  done
}

@test "a key of 4096 bytes works, one of 4097 is refused" {
  local long
  long=$(printf '%04096d' 0)
  locks_verbatim "$long"
  assert_refused 64 "longer than 4096 bytes" redlock-cli run -k "${long}0" -- true
  long=$(printf 'ü%.0s' {1..2048})
  locks_verbatim "$long"
  assert_refused 64 "longer than 4096 bytes" redlock-cli acquire -k "ü$long" -t 60s
}

@test "an empty key and a reserved one are refused by all commands" {
  local key
  for key in "" redlock: redlock:x 'redlock:fence:{demo}'; do
    assert_refused 64 "--key: the key" redlock-cli run -k "$key" -- true
    assert_refused 64 "--key: the key" redlock-cli acquire -k "$key" -t 60s
    assert_refused 64 "--key: the key" redlock-cli release -k "$key" --force
    assert_refused 64 "--key: the key" redlock-cli status -k "$key"
  done
  assert_equal "$(redis 0 dbsize)" 0
}

@test "keys that differ only in braces are different locks" {
  local key
  for key in foo '{foo}' '{foo}foo' 'foo}' '{foo' '{foo}}'; do
    run -0 redlock-cli acquire -k "$key" -t 60s -n
  done
  for key in foo '{foo}' '{foo}foo' 'foo}' '{foo' '{foo}}'; do
    run -75 redlock-cli acquire -k "$key" -t 60s -n
  done
}

@test "a key with escape sequences, in messages, is shown escaped" {
  local key=$'a\e[31m\x07b\x7f\xc2\x9b\r\n\xe2\x80\xae\xff' \
    shown='a\x1b[31m\x07b\x7f\u009b\r\n\u202e\xff'
  run -0 redlock-cli acquire -k "$key" -t 60s --note "$key"
  run -75 redlock-cli run -k "$key" -n -- true
  assert_line --partial "$shown: held by"
  assert_output --partial '"a\x1b[31m'
  refute_output --partial $'\e'
  run -75 redlock-cli acquire -k "$key" -n -t 60s
  assert_line --partial "$shown: held by"
  refute_output --partial $'\e'
  assert_refused 64 "$shown" env REDLOCK_LEASE="$(redlock-cli acquire -k plain -t 60s --json |
    sed 's/.*"lease":"\([^"]*\)".*/\1/')" \
    redlock-cli release -k "$key"
  run -0 redlock-cli status -k "$key"
  assert_line --partial "$shown: held by"
  refute_output --partial $'\e'
  run -0 redlock-cli status
  refute_output --partial $'\e'
  run -0 redlock-cli release -k "$key" --force
  assert_output --partial "$shown: broken"
  refute_output --partial $'\e'
}

# --- numbers and words ---

@test "-E takes every exit code" {
  redis 0 set demo x px 600000
  local code
  for ((code = 0; code < 256; ++code)); do
    status=0
    redlock-cli run -k demo -n -q -E "$code" -- true || status=$?
    assert_equal "$status" "$code"
  done
}

@test "wrong numbers and words are refused" {
  refuses_each --conflict-exit-code 256 -1 x "" 1.5 +5 0x10 " 5" 99999999999999999999
  refuses_each --on-lost bogus "" KILL kill,term
  refuses_each --stop-signal bogus "" 0 -1 65 999 SIGNOTHING " TERM" TERM,KILL
  refuses_each --status-fd 987 x -1 "" 99999999999999999999 3.0
  assert_refused 64 "--conflict-exit-code" redlock-cli run -k demo -E 256 -- true
}

@test "--status-fd must be open for writing" {
  run -64 --separate-stderr redlock-cli run -k demo --status-fd 7 -- true 7</dev/null
  assert_regex "$stderr" "--status-fd: descriptor 7 is not open for writing"
  exec 7>"$BATS_TEST_TMPDIR/report"
  run -0 redlock-cli run -k demo --status-fd 7 -- true
  exec 7>&-
  output=$(<"$BATS_TEST_TMPDIR/report")
  assert_equal "$(json 'j["result"]')" released
}

@test "a note of 512 bytes is shown in full, a longer one is cut between characters" {
  local note
  note=$(printf '%0512d' 7)
  run -0 redlock-cli acquire -k demo -t 60s --note "$note"
  run -0 redlock-cli status -k demo
  assert_output --partial "\"$note\""
  run -0 redlock-cli release -k demo --force --reason "${note}x"
  # 508 bytes of it, the half of an é and an ellipsis do not fit.
  run -0 redlock-cli run -k demo --note "${note:0:508}é and more" -- redlock-cli status -k demo
  assert_output --partial "\"${note:0:508}…\""
}

@test "a key that ends in white space or holds a control character gets one warning" {
  local key
  for key in $'deploy\r' 'deploy ' $'de\tploy' $'deploy\n'; do
    run -0 --separate-stderr redlock-cli run -k "$key" -k plain -- true
    assert_equal "${#stderr_lines[@]}" 1
    assert_regex "$stderr" "--key: 'de.*' ends in white space or holds a control character"
    run -0 --separate-stderr redlock-cli run -q -k "$key" -- true
    assert_equal "$stderr" ""
  done
  run -0 --separate-stderr redlock-cli run -k 'two words' -k umlaut-ä -- true
  assert_equal "$stderr" ""
}

# --- the line itself ---

@test "an option without its value, or given twice, is refused" {
  assert_refused 64 "--ttl" redlock-cli acquire -k demo --ttl
  assert_refused 64 "--key" redlock-cli acquire --ttl 60s -k
  assert_refused 64 "--ttl" redlock-cli run -k demo -t 30s -t 40s -- true
  assert_refused 64 "--note" redlock-cli run -k demo --note a --note b -- true
}

@test "a flag takes no value, or means what its value says" {
  redis 0 set demo x px 600000
  local value
  # A --force that means no never breaks the lock.
  for value in false 0 off maybe ""; do
    run redlock-cli release -k demo "--force=$value"
    assert_equal "--force=$value: $status $(redis 0 exists demo)" "--force=$value: 64 1"
  done
  assert_refused 64 "" redlock-cli run -k demo --nonblock=maybe -- true
}

# --- server URLs ---

@test "wrong URLs are refused: 78" {
  local url
  for url in nonsense localhost:6379 127.0.0.1 http://h rediss:/h redis:h redis:/h redis:// \
    redis:///0 redis://:6379 redis://h:0 redis://h:65536 \
    redis://h:x redis://h:-1 redis://h:+1 redis://h: redis://h/x redis://h/-1 redis://h/1/2 \
    redis://h/99999999999999999999 'redis://[::1' \
    'redis://[::zz]' 'redis://[]' 'redis://[::1]x' redis://::1 redis://h%zz redis://h% \
    redis://h%00 'redis://h?db=1' 'redis://h#x' 'redis://a b' \
    $'redis://h\e[31m' $'redis://h\nx' unix:// unix://relative unix:/x 'unix:///p?x=1' \
    'unix:///p?db=x' unix:///p%00 unix:///p%zz $'unix:///p\nx' \
    "unix:///$(printf '%0110d' 0)" redis://h,, ,redis://h foo://h '://h'; do
    assert_refused 78 "" redlock-cli run -S "$url" -k demo -- touch "$BATS_TEST_TMPDIR/ran"
    assert_regex "$stderr" "^redlock-cli: --server: "
    assert_refused 78 "REDLOCK_SERVER: " env REDLOCK_SERVER="$url" redlock-cli status
  done
  assert [ ! -e "$BATS_TEST_TMPDIR/ran" ]
}

@test "of several servers the wrong URL is named by its number, and an invalid host is shown" {
  assert_refused 78 "REDLOCK_SERVER: wrong server URL (2 of 3): it begins with no scheme" \
    env REDLOCK_SERVER=redis://a,redsi://b,redis://c redlock-cli status
  assert_refused 78 "wrong server URL: its host has a character that no host name has" \
    redlock-cli status -S 'redis://a b'
}

@test "servers can be given one by one, in a list, or both" {
  start_servers 3
  run -0 redlock-cli status -S "${SERVER_URL[0]}" -S "${SERVER_URL[1]},${SERVER_URL[2]}" \
    --server "${SERVER_URL[3]}" -k demo
  local nr
  for nr in 0 1 2 3; do assert_line --partial "${SERVER_URL[nr]}: free"; done
}

# locks_at URL DATABASE I: a lock at URL is in that database of server I.
locks_at() {
  run -0 redlock-cli run -S "$1" -k demo -- redis-cli -s "${SERVER_SOCKET[$3]}" -n "$2" exists demo
  assert_output 1
}

@test "a database is selected" {
  start_tcp_server
  locks_at "${SERVER_URL[1]}/2" 2 1
  locks_at "${SERVER_URL[1]}/" 0 1
  locks_at "${SERVER_URL[1]}/0" 0 1
  locks_at "unix://${SERVER_SOCKET[0]}?db=3" 3 0
  run -0 redlock-cli acquire -S "${SERVER_URL[1]}/2" -k demo -t 60s
  run -0 redlock-cli run -S "${SERVER_URL[1]}" -k demo -n -- true
  run -75 redlock-cli run -S "${SERVER_URL[1]}/2" -k demo -n -- true
}

@test "a database that the server does not have is named, and nothing is locked in another one" {
  assert_refused 78 "$SERVER_URL?db=99: " redlock-cli run -S "$SERVER_URL?db=99" -k demo -n -- true
  assert_unlocked demo 0
}

@test "hosts are found by name, by IPv4 and by IPv6 address, also percent-encoded" {
  start_tcp_server --bind 127.0.0.1 -::1
  local port=${SERVER_PORT[1]}
  locks_at "redis://127.0.0.1:$port" 0 1
  locks_at "redis://localhost:$port" 0 1
  locks_at "redis://LOCALHOST:$port" 0 1
  locks_at "redis://%31%32%37.0.0.1:$port/0" 0 1
  ss -Hltn "sport = :$port" | grep -q '\[::1\]' || skip "no IPv6 here"
  locks_at "redis://[::1]:$port" 0 1
  locks_at "redis://[0:0:0:0:0:0:0:1]:$port/1" 1 1
}

@test "a socket's path may be percent-encoded" {
  ln -s "$SERVER_SOCKET" "$SERVER_DIR/a b%,?.sock"
  locks_at "unix://$SERVER_DIR/a%20b%25%2c%3F.sock" 0 0
}

@test "a host that cannot be found is an unavailable server, not a wrong URL" {
  assert_refused 69 "no.such.host.invalid" \
    redlock-cli run -S redis://no.such.host.invalid -k demo -n -- true
  assert_refused 69 "cannot connect" redlock-cli run -S unix:///no/such/socket -k demo -n -- true
}
