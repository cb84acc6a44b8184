#!/usr/bin/env bats
# The sources of settings, and which of them wins.
load helper/common
load helper/settings

setup() { setup_settings; }

# --- the order ---

@test "the command line overrides the variable, and that overrides the user's file" {
  ends_with 75
  user_file 'conflict-exit-code = 13'
  ends_with 13
  export REDLOCK_CONFLICT_EXIT_CODE=14
  ends_with 14
  ends_with 15 -E 15
}

@test "a variable that resembles a setting is refused, any other is left alone" {
  assert_refused 78 "unknown setting; did you mean REDLOCK_CONFLICT_EXIT_CODE?" \
    env REDLOCK_CONFLICT_EXITCODE=13 redlock-cli run -k demo -- true
  assert_refused 78 "REDLOCK_SERVERS: unknown setting; did you mean REDLOCK_SERVER?" \
    env -u REDLOCK_SERVER REDLOCK_SERVERS="$SERVERS" redlock-cli status
  # A variable counts as misspelt only if the setting is not set by a stronger source than a file.
  REDLOCK_SERVERS=x run -0 redlock-cli run -k demo -- true
  REDLOCK_CONFLICT_EXITCODE=13 ends_with 15 -E 15
  user_file 'conflict-exit-code = 13'
  REDLOCK_CONFLICT_EXITCODE=14 ends_with 78
  # Kubernetes sets these for a service named "redlock"; "seat" is similar to "slots".
  REDLOCK_PORT=tcp://10.0.0.1:6379 REDLOCK_SERVICE_HOST=10.0.0.1 REDLOCK_SERVICE_PORT=6379 \
    REDLOCK_PORT_6379_TCP_PROTO=tcp REDLOCK_ADDR=x REDLOCK_URL=x REDLOCK_VERSION=1 \
    run -0 redlock-cli run -k demo -- true
  run -0 redlock-cli run -k outer --slots 2 -- redlock-cli run -k inner -- redlock-cli status
  # A setting of other commands.
  REDLOCK_CONFLICT_EXITCODE=13 run -0 redlock-cli status
}

@test "blanks and newlines around servers are ignored" {
  local value
  for value in "$SERVERS"$'\n' $'\t '"$SERVERS"$'\r\n'; do
    REDLOCK_SERVER=$value run -0 redlock-cli run -k demo -- true
  done
  assert_refused 78 "the server is empty" env REDLOCK_SERVER=$' \n' redlock-cli run -k demo -- true
}

@test "the file names the server for everything" {
  unset REDLOCK_SERVER
  assert_refused 78 "no server is set" redlock-cli run -k demo -- true
  assert_regex "$stderr" "-S redis://"
  assert_regex "$stderr" "/etc/redlock-cli.toml"
  user_file "server = \"$SERVERS\""
  run -0 redlock-cli run -k demo -- true
  eval "$(redlock-cli acquire -k demo -t 60s --export)"
  run -0 redlock-cli extend -t 60s
  run -0 redlock-cli release
  run -0 redlock-cli status -k demo
}

@test "a server list in the file is a quorum" {
  start_servers 2
  unset REDLOCK_SERVER
  user_file "server = [\"${SERVER_URL[0]}\", \"${SERVER_URL[1]}\", \"${SERVER_URL[2]}\"]"
  run -0 redlock-cli status -k demo
  assert_line --partial "${SERVER_URL[2]}: free"
  user_file "server = \"$SERVERS\""
  run -0 redlock-cli status -k demo
  assert_line --partial "${SERVER_URL[2]}: free"
}

@test "servers from several sources are not combined: only the strongest source counts" {
  start_server
  user_file "server = \"${SERVER_URL[1]}\""
  REDLOCK_SERVER=${SERVER_URL[0]} run -0 redlock-cli run -k demo \
    -- sh -c 'redis-cli -s "$0" exists demo' "${SERVER_SOCKET[1]}"
  assert_output 0
  REDLOCK_SERVER=${SERVER_URL[0]} run -0 redlock-cli run -S "${SERVER_URL[1]}" -k demo \
    -- sh -c 'redis-cli -s "$0" exists demo' "${SERVER_SOCKET[0]}"
  assert_output 0
}

@test "--wait on the command line overrides nonblock in the environment, and vice versa" {
  hold holder
  export REDLOCK_NONBLOCK=1
  start_background waiter redlock-cli run -k demo -w 1h -- true
  wait_for_stderr waiter "waiting for"
  release_hold holder
  wait_background waiter
  assert_equal "$status" 0
  unset REDLOCK_NONBLOCK
  REDLOCK_WAIT=1h ends_with 75
  REDLOCK_WAIT=1h REDLOCK_NONBLOCK=1 run -78 redlock-cli run -k busy -- true
  assert_refused 64 "-n and -w cannot be combined" redlock-cli run -k busy -n -w 1h -- true
  assert_refused 64 "--nonblock and --wait cannot be combined" \
    redlock-cli run -k busy --nonblock --wait 1h -- true
  assert_refused 64 "-n and --timeout (--wait) cannot be combined (a limit for the command is \
--max-hold)" redlock-cli run -k busy -n --timeout 1h -- true
}

@test "quiet in a file or a variable leaves the results of status and doctor alone; -q does not" {
  local command
  user_file 'quiet = true'
  for command in 'status demo' 'status demo --json' 'status demo --max-held 1h' status doctor \
    'doctor --json'; do
    # doctor warns of the server's settings.
    run --separate-stderr redlock-cli $command
    assert [ "$status" -le 1 ]
    assert [ -n "$output" ]
    REDLOCK_QUIET=1 run --separate-stderr redlock-cli $command --config /dev/null
    assert [ -n "$output" ]
    run --separate-stderr redlock-cli $command -q
    assert_equal "$output$stderr" ""
  done
  # Messages are silenced as ever.
  run --separate-stderr -0 redlock-cli run -k 'odd ' -- true
  assert_equal "$output$stderr" ""
}

@test "an alias is named as it was typed, with the option's name" {
  assert_refused 64 "--timeout (--wait): 'abc' is not a duration" \
    redlock-cli run -k demo --timeout abc -- true
  assert_refused 64 "--timeout (--wait): 'abc' is not a duration" \
    redlock-cli run -k demo --timeout=abc -- true
  assert_refused 64 "--timeout (--wait): the duration is empty" \
    redlock-cli run -k demo --timeout '' -- true
  assert_refused 64 "--timeout (--wait) is given twice" \
    redlock-cli run -k demo --wait 5s --timeout 5s -- true
  assert_refused 64 "--nb (--nonblock) takes no value" redlock-cli run -k demo --nb=1 -- true
  assert_refused 64 "--wait: 'abc' is not a duration" redlock-cli run -k demo -w abc -- true
}

@test "an option that a variable or a file contradicts names it, and what overrides it" {
  local option
  local -a run=(redlock-cli run -k demo)
  user_file 'nonblock = true'
  for option in --replace --supersede; do
    assert_refused 64 "$option takes the place of older waiters, and $USER_FILE: nonblock does not \
wait; override it with -w infinity" "${run[@]}" "$option" -- true
  done
  run -0 "${run[@]}" --replace -w infinity -- true
  user_file
  assert_refused 64 "--max-waiting: limits how many wait, and REDLOCK_WAIT does not wait; override \
it with -w infinity" env REDLOCK_WAIT=0 "${run[@]}" --max-waiting 2 -- true

  user_file 'slots = 3'
  assert_refused 64 "--supersede is for a lock that one process holds alone: with $USER_FILE: slots several \
waiters get in; override it with -x" "${run[@]}" --supersede -- true
  assert_refused 64 "--once-per: needs the lock alone, without REDLOCK_SHARED: runs side by side \
cannot tell which of them will succeed; override it with -x" \
    env REDLOCK_SHARED=1 "${run[@]}" --once-per 1h -- true
  run -0 "${run[@]}" --once-per 1h --supersede -x -- true
  assert_refused 64 "--take: 5 is more than the 3 of $USER_FILE: slots" "${run[@]}" --take 5 -- true

  user_file 'on-lost = "warn"' 'max-hold = "3s"'
  assert_refused 64 "--replace: stops CMD for a newer run, and $USER_FILE: on-lost warn never stops \
it; override it with --on-lost kill" "${run[@]}" --replace -- true
  assert_refused 64 "--on-stop: needs --on-lost kill: with $USER_FILE: on-lost warn the command may \
go on without the lock" "${run[@]}" --on-stop true -- true
  run -0 "${run[@]}" --replace --on-stop true --on-lost kill -- true
  assert_refused 64 "--min-hold: 5s is longer than the $USER_FILE: max-hold of 3s" \
    "${run[@]}" --min-hold 5s -- true
}

# --- empty values ---

@test "an empty server value is an error wherever it comes from: 78" {
  local text="the server is empty"
  assert_refused 78 "REDLOCK_SERVER: $text" env REDLOCK_SERVER= redlock-cli run -k demo \
    -- touch "$BATS_TEST_TMPDIR/ran"
  assert_refused 78 "$text" redlock-cli run -S '' -k demo -- touch "$BATS_TEST_TMPDIR/ran"
  assert_refused 78 "$text" redlock-cli run -S "$SERVERS," -k demo -- touch "$BATS_TEST_TMPDIR/ran"
  assert_refused 78 "$text (1 of 2); name one with -S" env REDLOCK_SERVER=, redlock-cli status
  unset REDLOCK_SERVER
  user_file 'server = ""'
  assert_refused 78 "$text" redlock-cli run -k demo -- touch "$BATS_TEST_TMPDIR/ran"
  assert [ ! -e "$BATS_TEST_TMPDIR/ran" ]
  assert_equal "$(keys_at 0)" busy
}

@test "an empty list of servers is an error: 78" {
  unset REDLOCK_SERVER
  user_file 'server = []'
  assert_refused 78 "the list is empty" redlock-cli run -k demo -- touch "$BATS_TEST_TMPDIR/ran"
  assert_refused 78 "the list is empty" redlock-cli status
  assert [ ! -e "$BATS_TEST_TMPDIR/ran" ]
}

@test "a value may end with =, and begin like an option" {
  run -0 --separate-stderr redlock-cli run --key=dGVzdA== --note='--a=' \
    -- redis-cli -s "${SERVER_SOCKET[0]}" exists dGVzdA==
  assert_output 1
}

@test "an empty value after = is the value, and the next word is not taken for it" {
  assert_refused 78 "the server is empty" redlock-cli run --server= -k demo \
    -- touch "$BATS_TEST_TMPDIR/ran"
  assert_refused 64 "--ttl" redlock-cli acquire --ttl= -k demo
  assert_refused 64 "the key is empty" redlock-cli run --key= -n -- touch "$BATS_TEST_TMPDIR/ran"
  run -0 redlock-cli run --note= -k demo -- true
  assert [ ! -e "$BATS_TEST_TMPDIR/ran" ]
}

@test "an empty variable is set, and overrides a file" {
  user_file 'ttl = "30s"' 'conflict-exit-code = 13' "server = \"$SERVERS\""
  assert_refused 78 "REDLOCK_TTL" env REDLOCK_TTL= redlock-cli run -k demo -- true
  assert_refused 78 "REDLOCK_CONFLICT_EXIT_CODE" env REDLOCK_CONFLICT_EXIT_CODE= \
    redlock-cli run -k demo -- true
  assert_refused 78 "REDLOCK_NONBLOCK" env REDLOCK_NONBLOCK= redlock-cli run -k demo -- true
  assert_refused 78 "REDLOCK_ON_LOST" env REDLOCK_ON_LOST= redlock-cli run -k demo -- true
  assert_refused 78 "REDLOCK_STOP_SIGNAL" env REDLOCK_STOP_SIGNAL= redlock-cli run -k demo -- true
  assert_refused 78 "REDLOCK_SERVER" env REDLOCK_SERVER= redlock-cli run -k demo -- true
}

# --- what is no setting ---

@test "REDLOCK_KEY and the like are passed to commands, and are never settings" {
  export REDLOCK_KEY=demo
  assert_refused 64 "-k KEY" redlock-cli run -- true
  assert_refused 64 "-k KEY" redlock-cli acquire -t 60s
  assert_refused 64 "release --force needs KEY" redlock-cli release --force
  redis 0 del busy
  run -0 redlock-cli status
  assert_output "no locks"
}

@test "options of a single call have no variables" {
  export REDLOCK_FORCE=1 REDLOCK_EXPORT=1 REDLOCK_TOKEN_FILE=$BATS_TEST_TMPDIR/lease \
    REDLOCK_COMMAND=false REDLOCK_EXIT_CODE=1
  export REDLOCK_IF_FENCE=1 REDLOCK_WATCH=1
  run -0 redlock-cli acquire -k demo -t 60s
  assert_regex "$output" '^[0-9a-f]{32}$'
  assert [ ! -e "$BATS_TEST_TMPDIR/lease" ]
  run -64 redlock-cli release -k demo
  assert_equal "$(redis 0 exists demo)" 1
  run -0 redlock-cli status -k demo
  run -0 redlock-cli run -k other -- true
}

@test "options of a single call are refused in a file" {
  local line
  for line in 'key = "demo"' 'force = true' 'token-file = "x"' 'export = true' 'command = "true"' \
    'if-fence = 1' 'exit-code = true' \
    'watch = true' 'status-fd = 1'; do
    user_file "$line"
    assert_refused 78 \
      "$USER_FILE: line 1, column 1: ${line%% *} belongs on the command line, not in a file" \
      redlock-cli run -k demo -- true
    assert_refused 78 "$USER_FILE: line 1, column 1: ${line%% *}" redlock-cli status
  done
  for line in 'while-pid = 1' 'token = "x"' 'fence = 1' 'lease = "x"' 'held = "x"'; do
    user_file "$line"
    assert_refused 78 "$USER_FILE: " redlock-cli run -k demo -- true
  done
}

@test "an unknown setting, a section and a name twice are refused with line and column: 78" {
  user_file 'no-such-setting = 1'
  assert_refused 78 \
    "$USER_FILE: line 1, column 1: unknown setting; write lines such as: server" \
    redlock-cli run -k demo -- true
  user_file '# a comment' '' '[run]' 'ttl = "30s"'
  assert_refused 78 "$USER_FILE: line 3, column 2: sections are not known" \
    redlock-cli run -k demo -- true
  user_file 'run.ttl = "30s"'
  assert_refused 78 "$USER_FILE: line 1, column 1: sections are not known" \
    redlock-cli run -k demo -- true
  user_file '[[server]]' 'url = "redis://h"'
  assert_refused 78 "$USER_FILE: line 1, column 3: sections are not known" \
    redlock-cli run -k demo -- true
  user_file 'ttl = "30s"' 'ttl = "40s"'
  assert_refused 78 "$USER_FILE: line 2, column 7: this name was set before" \
    redlock-cli run -k demo -- true
  user_file 'TTL = "30s"'
  assert_refused 78 "$USER_FILE: line 1, column 1: unknown setting" \
    redlock-cli run -k demo -- true
  user_file 'quiet = true' ' servr = "redis://h"'
  assert_refused 78 "line 2, column 2: unknown setting; write lines such as: \
server = \"redis://host:6379\"; did you mean 'server'?" redlock-cli run -k demo -- true
  user_file 'ttl = ["30s", "40s"]'
  assert_refused 78 "$USER_FILE: ttl: takes one value" redlock-cli run -k demo -- true
}

@test "what is not TOML is refused with line and column: 78" {
  local line text="not TOML; expected are lines such as: server = \"redis://host:6379\""
  for line in 'ttl = 30s' 'ttl = "30s' "note = don't" 'ttl "30s"' 'server = ["redis://h"' \
    '; a comment' $'note = "a\x01b"' $'note = "\x80"' \
    'note = "\q"' '[!]' ' [[ =]]' $'[\x03]'; do
    user_file '# first' "$line"
    assert_refused 78 "$USER_FILE: line " redlock-cli run -k demo -- true
    assert_regex "$stderr" ", column [0-9]+: $text"
  done
  for line in 'ttl = 1979-05-27' 'server = [["redis://h"]]' 'ttl = [07:32:00]'; do
    user_file "$line"
    assert_refused 78 "$USER_FILE: line 1, column " redlock-cli run -k demo -- true
    assert_regex "$stderr" "a value is a string, a number, true, false or a list of these$"
  done
}

@test "a number is used as spelled in the file, and is digits with at most one dot" {
  local line
  user_file 'note = 1.10' 'wait = 10.0' 'ttl = 40' 'conflict-exit-code = 7 # 8'
  run -0 redlock-cli doctor --settings
  assert_line "note = 1.10 ($USER_FILE: note)"
  assert_line "wait = 10.0 ($USER_FILE: wait)"
  assert_line "conflict-exit-code = 7 ($USER_FILE: conflict-exit-code)"
  printf '\xef\xbb\xbfgrace = 1.50\nnote = 2.20\r\n' >"$USER_FILE"
  run -0 redlock-cli doctor --settings
  assert_line "grace = 1.50 ($USER_FILE: grace)"
  assert_line "note = 2.20 ($USER_FILE: note)"
  for line in 'ttl = 1e3' 'ttl = +30' 'ttl = 0x1E' 'ttl = 1_000' 'ttl = inf' 'ttl = -1' \
    'ttl = 0o7'; do
    user_file '' "$line"
    assert_refused 78 "$USER_FILE: line 2, column 7: a number is digits" redlock-cli status
  done
  user_file 'server = ["ü", 3, 1e3]'
  assert_refused 78 "$USER_FILE: line 1, column 19: a number is digits" redlock-cli status
  user_file 'slots = 3.0'
  assert_refused 78 "$USER_FILE: slots: must be a whole number" redlock-cli run -k demo true
}

@test "a value without quotes, or with a NUL, is refused: 78" {
  user_file 'ttl = 30s'
  assert_refused 78 "; text stands in quotes" redlock-cli status
  user_file 'note = "a\u0000b"'
  assert_refused 78 "$USER_FILE: line 1, column 8: a value holds no NUL" redlock-cli status
}

@test "a name of very many parts is refused as a section is: 78" {
  local dots open="sections are not known here"
  dots=$(printf 'a.%.0s' {1..20000})a
  for line in "$dots = 1" "[$dots]" "[[$dots]]" "note = { $dots = 1 }" "# \"
$dots = 1" "note = '''a''''
$dots = 1" "note = \"a\\\"b\" # '
$dots = 1"; do
    user_file "$line"
    assert_refused 78 "$USER_FILE: $open" redlock-cli status
  done
  # In quotes and comments they have no meaning.
  user_file "# ${dots//a/.}" "note = '${dots:0:500}'" "grace = 1.5 # ${dots:0:500}"
  run -0 redlock-cli status
}

# A user who names a configuration file for a program with other rights must not learn its content.
@test "the content of a file is never quoted" {
  local secret=$BATS_TEST_TMPDIR/secret line
  ln -s "$secret" "$BATS_TEST_TMPDIR/link"
  for line in 'hunter2' 'hunter2:x:0:0::/root:/bin/sh' 'hunter2 = 1' '[hunter2]' 'hunter2.ttl = 1' \
    '"hunter2" = "x"' "'hunter2'" '[hunter2' 'hunter2 = [' 'ttl = "hunter2"' \
    'ttl = ["hunter2", "hunter2"]' 'ttl = hunter2s' 'quiet = hunter2' 'stop-signal = "hunter2"' \
    'on-lost = "hunter2"' 'replicas = "hunter2"' 'isolate = "hunter2"' 'config = hunter2' \
    'server = "hunter2"' 'server = "hunter2://x"' 'server = "redis://hunter2/x"' \
    'server = "redis://h:hunter2"' \
    'conflict-exit-code = hunter2' '-----BEGIN hunter2-----'; do
    printf '%s\n' "$line" >"$secret"
    [[ $line != server* ]] || unset REDLOCK_SERVER
    run redlock-cli run -k demo --config "$BATS_TEST_TMPDIR/link" -vv -- true
    assert [ "$status" == 78 ]
    [[ $output != *unter2* ]] || fail "$line: $output"
  done
}

@test "comments, blank lines and both kinds of quotes are accepted" {
  user_file '# a comment' '' "server = '$SERVERS' # the only one" 'conflict-exit-code=13' \
    '  ttl = "30s"'
  unset REDLOCK_SERVER
  ends_with 13
}

@test "a list may have several lines with comments, and a # within quotes is not a comment" {
  user_file 'server = [ # all of them' "  \"$SERVERS\", # the first #" ']' "note = 'deploy #42'" \
    'conflict-exit-code = 13 # "busy"'
  unset REDLOCK_SERVER
  ends_with 13
  run -0 redlock-cli acquire -k demo -t 60s
  run -0 redlock-cli status -k demo --json
  assert_equal "$(json 'j["locks"][0]["holder"]["note"]')" "deploy #42"
  user_file 'server = "redis://h#x"'
  assert_refused 78 "server" redlock-cli run -k demo -- true
}

@test "escapes, multi-line texts and every kind of number are accepted" {
  user_file 'note = "a \u00fc\t\"b\" \\"' 'wait = 1.5' 'ttl = 40' 'restart-guard = 0' \
    'nonblock = false' 'verbose = 1' 'quiet = true'
  run -0 redlock-cli doctor --settings
  assert_line "note = a ü\\t\"b\" \\\\ ($USER_FILE: note)"
  assert_line "wait = 1.5 ($USER_FILE: wait)"
  assert_line "ttl = 40 ($USER_FILE: ttl)"
  assert_line "nonblock = false ($USER_FILE: nonblock)"
  assert_line "quiet = true ($USER_FILE: quiet)"
  user_file 'note = """' 'two' 'lines"""'
  run -0 redlock-cli doctor --settings
  assert_line "note = two\\nlines ($USER_FILE: note)"
}

@test "a wrong value is 64 on the command line and 78 elsewhere, and its origin is named" {
  assert_refused 64 "--ttl" redlock-cli run -k demo --ttl 5x -- true
  assert_refused 78 "REDLOCK_TTL" env REDLOCK_TTL=5x redlock-cli run -k demo -- true
  user_file 'ttl = "5x"'
  assert_refused 78 "$USER_FILE: ttl" redlock-cli run -k demo -- true
}

# --- every option ---

# The long names of the options that may be set anywhere: those of `doctor --settings`, except those
# that no file may contain.
options_from_anywhere() {
  redlock-cli doctor --settings | sed 's/ .*//' | grep -vxE 'config|status-fd'
}

# A valid value and an invalid one of an option for which those of its kind (see sample) will not do.
declare -gA GOOD=([ttl]=40s [min-hold]=10ms [server-timeout]=700ms [user]=default [replicas]=0
  [slots]=phone1,phone2)
declare -gA BAD=(
  [max-hold]=0 [retry-delay]=0 [conflict-exit-code]=256 [fresh-exit-code]=256 [slots]=0
  [server]=nonsense [password-file]=/no/such/file
)

# sample OPTION: sets `good` and `bad` to values of the kind that --help-all shows; every value may
# be good (bad='').
sample() {
  local operand
  operand=$(sed -nE "s/^  ([^ ]*,)?--$1(,[^ ]*)?( ([^ ]+))?( .*)?$/\4/p" <<<"$HELP")
  case $operand in
    '') good=true bad=maybe ;;
    DUR) good=5s bad=5x ;;
    N) good=3 bad=x ;;
    SIG) good=INT bad=NONSENSE ;;
    *'|'*) good=${operand%%|*} bad=maybe ;;
    # Without a server that has TLS most files are not used; tls.bats uses them.
    *) good=/no/file bad='' ;;
  esac
  good=${GOOD[$1]-$good}
  bad=${BAD[$1]-$bad}
}

@test "every option that may be set anywhere works in a variable and in a file, and its value is checked" {
  # With a login, so that --user and --password-file have an effect.
  start_server --requirepass secret
  echo secret >"$BATS_TEST_TMPDIR/password"
  GOOD[server]=${SERVER_URL[1]}
  GOOD[password-file]=$BATS_TEST_TMPDIR/password
  export REDLOCK_SERVER=${SERVER_URL[1]} REDISCLI_AUTH=secret
  local HELP option variable options good bad
  HELP=$(redlock-cli run --help-all)
  options=$(options_from_anywhere)
  assert [ "$(wc -l <<<"$options")" -ge 28 ]
  for option in $options; do
    sample "$option"
    variable=${option^^}
    variable=REDLOCK_${variable//-/_}
    rm -f "$USER_FILE"
    run env "$variable=$good" redlock-cli run -k demo -- true
    assert_equal "$variable=$good: $status" "$variable=$good: 0"
    user_file "$option = \"$good\""
    run env -u "$variable" redlock-cli run -k demo -- true
    assert_equal "$option = $good: $status" "$option = $good: 0"
    [[ -n $bad ]] || continue
    user_file "$option = \"$bad\""
    assert_refused 78 "$USER_FILE: $option" env -u "$variable" redlock-cli run -k demo -- true
    # The variable hides the file's bad value.
    run -0 env "$variable=$good" redlock-cli run -k demo -- true
    assert_refused 78 "$variable" env "$variable=$bad" redlock-cli run -k demo -- true
  done
}

@test "flags accept yes and no, and no means no" {
  local value
  for value in 1 true yes on; do
    REDLOCK_NONBLOCK=$value run -75 redlock-cli run -k busy -- true
  done
  for value in 0 false no off; do
    REDLOCK_NONBLOCK=$value start_background waiter redlock-cli run -k busy -- true
    wait_for_stderr waiter "waiting for"
    kill -TERM "${BACKGROUND_PID[waiter]}"
    wait_background waiter
  done
  for value in 2 TRUE " 1" x; do
    assert_refused 78 "REDLOCK_NONBLOCK" env REDLOCK_NONBLOCK="$value" \
      redlock-cli run -k busy -- true
  done
}

@test "the settings do what their options do" {
  user_file 'note = "from the file"' 'verbose = 1' 'json = true' 'quiet = false'
  run -0 --separate-stderr redlock-cli acquire -k demo -t 60s
  assert_equal "$(json 'j["result"]')" acquired
  run -0 redlock-cli status -k demo
  assert_equal "$(json 'j["locks"][0]["holder"]["note"]')" "from the file"
  user_file 'quiet = true'
  ends_with 75
  assert_equal "$stderr" ""
  user_file 'ttl = "77s"'
  run -0 redlock-cli acquire -k other
  assert_in_range "$(redis 0 pttl other)" 60000 77000
}
