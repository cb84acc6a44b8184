#!/usr/bin/env bats
# bats file_tags=smoke
# What the command of `run` inherits, and how its status is returned.
load helper/common

setup() {
  setup_one_server
  allow_late_answers
}

locked() { redlock-cli run -k demo "$@"; }

# --- Arguments and input ---

# Prints the number of arguments, and each of them.
show_arguments() {
  executable show-arguments <<'END'
#!/bin/sh
echo "$#"
for argument; do printf '<%s>\n' "$argument"; done
END
}

@test "arguments reach the command untouched" {
  local show
  show=$(show_arguments)
  local -a arguments=(-xzf --help '' $'two\nlines' $'ends in a newline\n' -- -k other -n --json --
    ' ' '*' '$HOME' "it's" \\ -h
    --version $'\xff\xfe\x01')
  run --keep-empty-lines -- "$show" "${arguments[@]}"
  local expected=$output
  assert_line --index 0 "${#arguments[@]}"
  run --keep-empty-lines -- locked -- "$show" "${arguments[@]}"
  assert_success
  assert_equal "$output" "$expected"
}

@test "a command without arguments gets none" {
  run locked -- "$(show_arguments)"
  assert_output 0
}

@test "an argument of 100 kB passes" {
  local long
  long=$(printf '%0100000d' 7)
  run locked -- sh -c 'echo ${#1}' - "$long"
  assert_output 100000
}

@test "the command sees the name that the user gave as its own" {
  ln -s "$(command -v bash)" "$BATS_TEST_TMPDIR/other-name"
  PATH=$BATS_TEST_TMPDIR:$PATH run locked -- other-name -c 'echo "$0"'
  assert_output other-name
}

@test "the command reads all of our stdin" {
  local sent=$BATS_TEST_TMPDIR/sent received=$BATS_TEST_TMPDIR/received
  head -c 1000000 /dev/urandom >"$sent"
  locked -- cat <"$sent" >"$received"
  cmp "$sent" "$received"
  tail -c +1 "$sent" | locked -- cat >"$received"
  cmp "$sent" "$received"
}

@test "only the command reads stdin" {
  run sh -c 'printf "first\nsecond\n" | {
    redlock-cli run -k demo -- sh -c "read line; echo command: \$line"
    cat
  }'
  assert_output $'command: first\nsecond'
}

# --- Environment ---

@test "the command sees the lease in its environment" {
  run locked -- sh -c 'env | grep -o "^REDLOCK_[A-Z]*=." | sed s/.$// | sort'
  assert_line REDLOCK_KEY=
  assert_line REDLOCK_TOKEN=
  assert_line REDLOCK_FENCE=
  assert_line REDLOCK_LEASE=
  run locked -- sh -c 'echo "$REDLOCK_KEY"; echo "$REDLOCK_FENCE" | grep -xE "[1-9][0-9]*"'
  assert_success
  assert_line --index 0 demo
}

@test "the lease's variables replace inherited ones" {
  REDLOCK_KEY=old REDLOCK_TOKEN=old REDLOCK_FENCE=old REDLOCK_LEASE=old run locked -- env
  assert_line REDLOCK_KEY=demo
  refute_line --regexp '^REDLOCK_[A-Z]*=old$'
  assert_equal "$(grep -c ^REDLOCK_TOKEN= <<<"$output")" 1
}

@test "everything else in the environment passes untouched" {
  export EMPTY='' LINES_OF=$'two\nlines'
  # odd.name: no shell could set it.
  env odd.name=x env -0 | grep -zv '^_=' | sort -z >"$BATS_TEST_TMPDIR/outside"
  env odd.name=x "$REDLOCK_CLI" run -k demo -- env -0 |
    grep -zvE '^(_|REDLOCK_(KEY|TOKEN|FENCE|LEASE|HELD))=' | sort -z >"$BATS_TEST_TMPDIR/inside"
  cmp "$BATS_TEST_TMPDIR/outside" "$BATS_TEST_TMPDIR/inside"
  grep -qz '^odd.name=x$' "$BATS_TEST_TMPDIR/inside"
}

# bats test_tags=redis
@test "a nested run shows the inner lock" {
  run redlock-cli run -k outer -- redlock-cli run -k inner -- sh -c '
    echo "$REDLOCK_KEY"
    test "$(redis-cli -s "$0" get inner)" = "$REDLOCK_TOKEN" &&
      redis-cli -s "$0" exists inner outer' "$SERVER_SOCKET"
  assert_success
  assert_output $'inner\n2'
}

# --- The key ---

# bats test_tags=redis
@test "while the command runs the key holds its token and has an expiry, and afterwards nothing is left" {
  run locked -t 20s --server-timeout 2s -- sh -c '
    test "$(redis-cli -s "$0" get demo)" = "$REDLOCK_TOKEN" && redis-cli -s "$0" pttl demo' \
    "$SERVER_SOCKET"
  assert_success
  assert [ "$output" -gt 0 ]
  assert [ "$output" -le 20000 ]
  assert_equal "$(keys_at 0)" ""
  # The remaining keys expire.
  assert [ "$(redis 0 pttl 'redlock:fence:{demo}')" -gt 0 ]
}

@test "the key is released before run ends, whatever the command's status" {
  local code
  for code in 0 1 75 79 127; do
    run "-$code" locked -- sh -c 'exit "$0"' "$code"
    assert_equal "$(keys_at 0)" ""
  done
}

# bats test_tags=redis
@test "a key of any bytes is locked unchanged" {
  local key=$'a b{c}\n\xff}'
  run redlock-cli run -k "$key" -- sh -c '
    test "$REDLOCK_KEY" = "$1" && test "$(redis-cli -s "$0" get "$1")" = "$REDLOCK_TOKEN"' \
    "$SERVER_SOCKET" "$key"
  assert_success
}

# --- Descriptors ---

@test "the command inherits the caller's descriptors" {
  echo input >"$BATS_TEST_TMPDIR/in"
  locked -- sh -c 'cat <&8; echo output >&9' 8<"$BATS_TEST_TMPDIR/in" 9>"$BATS_TEST_TMPDIR/out" \
    >"$BATS_TEST_TMPDIR/stdout"
  assert_equal "$(<"$BATS_TEST_TMPDIR/stdout")" input
  assert_equal "$(<"$BATS_TEST_TMPDIR/out")" output
}

@test "the command inherits no descriptor of redlock-cli" {
  local list=(sh -c 'cd /proc/$$/fd && echo *')
  run "${list[@]}"
  local outside=$output
  run locked -- "${list[@]}"
  assert_output "$outside"
}

@test "closed standard descriptors do no harm, and nothing is written into a socket" {
  locked -- true
  redis 0 config resetstat
  local stdin stdout stderr out=$BATS_TEST_TMPDIR/out
  for stdin in '' '<&-'; do
    for stdout in '' '>&-'; do
      for stderr in '' '2>&-'; do
        rm -f "$out"
        run sh -c "redlock-cli run -vv -k demo -- sh -c 'cd /proc/\$\$/fd; echo * >$out' \
$stdin $stdout $stderr"
        assert_success
        local inside
        inside=$(<"$out")
        # By `run`, too: newer versions of it open a descriptor of their own.
        run sh -c "sh -c 'cd /proc/\$\$/fd; echo * >$out' $stdin $stdout $stderr"
        assert_equal "$stdin$stdout$stderr: $inside" "$stdin$stdout$stderr: $(<"$out")"
      done
    done
  done
  # A message sent to the server would be an unknown command there.
  refute grep -q errorstat_ERR <(redis 0 info errorstats)
  assert_equal "$(keys_at 0)" ""
}

# bats test_tags=redis
@test "a wait with closed standard descriptors works too" {
  redis 0 set demo x
  start_background waiter \
    sh -c 'exec redlock-cli run -vv -k demo -- sh -c "echo entered >\"\$0\"" "$0" <&- >&- 2>&-' \
    "$BATS_TEST_TMPDIR/entered"
  wait_until has_run_scripts 0 "$(($(scripts_run 0) + 2))"
  assert [ ! -e "$BATS_TEST_TMPDIR/entered" ]
  redis 0 del demo
  wait_background waiter
  assert_equal "$status" 0
  assert_equal "$(<"$BATS_TEST_TMPDIR/entered")" entered
  refute grep -q errorstat_ERR <(redis 0 info errorstats)
}

@test "a stderr that is not read, or is full, changes nothing" {
  open_broken_pipe 7
  exec 8>/dev/full
  local fd
  for fd in 7 8; do
    run sh -c "redlock-cli run -vv -k demo -- sh -c 'exit 3' 2>&$fd"
    assert_equal "$status" 3
    # There is a message about the processes that are left.
    run sh -c "redlock-cli run -k demo -- \
sh -c 'sleep 1 </dev/null >/dev/null 2>&1 & exit 4' 2>&$fd"
    assert_equal "$status" 4
    redis 0 set demo x
    run sh -c "redlock-cli run -n -k demo -- true 2>&$fd"
    assert_equal "$status" 75
    redis 0 del demo
    run sh -c "redlock-cli run true 2>&$fd"
    assert_equal "$status" 64
    run -127 sh -c "redlock-cli run -k demo -- /no/such/program 2>&$fd"
    run sh -c "redlock-cli run -S '' -k demo -- true 2>&$fd"
    assert_equal "$status" 78
  done
}

# --- What a service manager hands to the process that it starts ---

# as_service PID WORD…: as systemd starts a service with a socket and a watchdog, for the process
# with this pid.
as_service() {
  local pid=$1
  shift
  sh -c 'export LISTEN_PID='"$pid"' LISTEN_PIDFDID=1234 LISTEN_FDS=1 LISTEN_FDNAMES=web
    export WATCHDOG_PID=$LISTEN_PID WATCHDOG_USEC=2000000
    exec "$@" 3</dev/null' sh "$@"
}
readonly SERVICE_VARIABLES='echo "$LISTEN_PID $WATCHDOG_PID $LISTEN_PIDFDID" \
  "$LISTEN_FDS $LISTEN_FDNAMES $WATCHDOG_USEC"'

@test "sockets and watchdog of a service are the command's" {
  run as_service '$$' redlock-cli run -k demo -- sh -c \
    '[ -e /dev/fd/3 ] && [ "$LISTEN_PID $WATCHDOG_PID" = "$$ $$" ] && '"$SERVICE_VARIABLES"
  assert_regex "$output" '^[0-9]+ [0-9]+  1 web 2000000$'
}

@test "those of another process stay its own" {
  run as_service 1 redlock-cli run -k demo -- sh -c "$SERVICE_VARIABLES"
  assert_output "1 1 1234 1 web 2000000"
}

@test "they are not those of --on-stop" {
  cd "$BATS_TEST_TMPDIR"
  run as_service '$$' redlock-cli run -k demo --max-hold 100ms \
    --on-stop 'echo "$LISTEN_PID $WATCHDOG_PID" >hook' -- sh -c 'echo $PPID $$; exec sleep 1000'
  assert_equal "$status" 124
  local -a pids=($(<hook))
  assert_equal "${#pids[@]}" 2
  assert_equal "${pids[0]}" "${pids[1]}"
  refute_regex "$output" "\b${pids[0]}\b"
}

# --- -c ---

@test "-c passes the text to the user's shell" {
  local shell
  shell=$(show_arguments)
  SHELL=$shell run locked -c $'echo "$A" | wc -l\n-x'
  assert_output $'2\n<-c>\n<echo "$A" | wc -l\n-x>'
}

@test "-c uses a shell even without SHELL" {
  local shell
  for shell in -u -; do
    if [[ $shell == - ]]; then
      run env SHELL= "$REDLOCK_CLI" run -k demo -c 'echo a b | tr a-z A-Z; exit 3'
    else
      run env -u SHELL "$REDLOCK_CLI" run -k demo -c 'echo a b | tr a-z A-Z; exit 3'
    fi
    assert_equal "$status" 3
    assert_output "A B"
  done
}

@test "-c uses a shell if the account's own runs nothing" {
  local shell
  for shell in /usr/sbin/nologin /sbin/nologin /bin/false /usr/bin/true; do
    SHELL=$shell run locked -c 'echo a b | tr a-z A-Z; exit 3'
    assert_equal "$status" 3
    assert_output "A B"
  done
}

@test "-c passes the lease on" {
  SHELL=/bin/bash run locked -c 'echo "$REDLOCK_KEY ${BASH_VERSION:+bash}"'
  assert_output "demo bash"
}

@test "there is no shell without -c" {
  run locked -- echo '$REDLOCK_KEY; `id` | cat'
  assert_output '$REDLOCK_KEY; `id` | cat'
}

# --- Command lines that are refused ---

@test "the first word that is not an option begins the command, and all further words belong to it" {
  local show
  show=$(show_arguments)
  local -a arguments=(-xzf --help '' $'two\nlines' -- -k other -n --json -- '[a,b]' -h --version)
  run --keep-empty-lines -- "$show" "${arguments[@]}"
  local expected=$output
  run --keep-empty-lines -- locked "$show" "${arguments[@]}"
  assert_success
  assert_equal "$output" "$expected"
  run --keep-empty-lines -- locked -- "$show" "${arguments[@]}"
  assert_equal "$output" "$expected"
}

@test "options with and without a value are distinguished, whether -- follows or not" {
  local options
  for options in -n -w5s '--wait=5s -q' '--on-lost warn -E 0' -x '-nE 3' \
    -qnE3 '--note=' '--note why' '-q -q'; do
    # shellcheck disable=SC2086
    run -0 locked $options echo -n --note -- x
    assert_output -- "--note -- x"
    # shellcheck disable=SC2086
    run -0 locked $options -- echo -- -n
    assert_output -- "-- -n"
  done
}

@test "a word that looks like an option but is unknown does not begin the command either" {
  local word
  for word in -5 '- x' --=x; do
    run locked "$word" true
    assert_equal "$word: $status" "$word: 64"
  done
  run -127 locked - true
  assert_equal "$(redis 0 dbsize)" 0
}

@test "letters after one dash: the last may take a value, and -c among them needs no --" {
  run redlock-cli run -k demo -nc 'exit 3'
  assert_failure 3
  run redlock-cli run -nqk demo -c 'exit 4'
  assert_failure 4
  assert_refused 64 "--key needs a value" redlock-cli run -nk
}

@test "run without a key reports where it belongs" {
  assert_refused 64 "-k stands after the command true: options come before the command: redlock-cli \
run -k demo -- true" redlock-cli run true -k demo
  assert_refused 64 ": redlock-cli run -n -k 'to prod' -- ./deploy.sh --fast" \
    redlock-cli run -n ./deploy.sh --key='to prod' --fast
  assert_refused 64 "before the command: redlock-cli run -k KEY -- true" redlock-cli run -- true
  assert_refused 64 "before the command: redlock-cli run -k deploy ./deploy.sh 'to prod'" \
    redlock-cli run deploy ./deploy.sh 'to prod'
  assert_refused 64 "before the command: redlock-cli run -S local: -n -E 0 -q --once-per 20h -k \
backup bin/backup.sh" redlock-cli run -S local: -n -E 0 -q --once-per 20h backup bin/backup.sh
  assert_refused 64 "before the command: redlock-cli run -n --note 'a b' -k KEY -- curl" \
    redlock-cli run -n --note 'a b' -- curl -k https://host
  assert_equal "$(redis 0 dbsize)" 0
}

@test "-c with more than one word reports what to do about it" {
  assert_refused 64 \
    "-c takes one word, the whole text for the shell, and x is one too many: \
put all of it in quotes" \
    redlock-cli run -k demo -c 'echo a' x y
}

@test "an option after one without its value is not taken as the value" {
  assert_refused 64 \
    "--key needs a value, and -n looks like an option; if it is the value, write --key=-n" \
    redlock-cli run -k -n -- true
  assert_refused 64 "write --note='-a b'" redlock-cli acquire -k demo --ttl 5s --note '-a b'
  assert_refused 64 "write --wait=-1s" redlock-cli run -k demo -nw -1s -- true
  assert_refused 64 "write --server=-k" redlock-cli status -S -k demo
  assert_refused 64 "write --command=-x" redlock-cli run -k demo -c -x
  assert_refused 64 "write --key=--" redlock-cli run -k -- true
  assert_refused 64 "write --key=-1" redlock-cli run -k -1 true
  assert_equal "$(redis 0 dbsize)" 0
  run -0 redlock-cli run --key=-n --note=-a -- sh -c 'printf "<%s>" "$REDLOCK_KEY"'
  assert_output "<-n>"
  run -0 redlock-cli run -k - -- sh -c 'printf "<%s>" "$REDLOCK_KEY"'
  assert_output "<->"
  run -0 redlock-cli run --key=-- -- sh -c 'printf "<%s>" "$REDLOCK_KEY"'
  assert_output "<-->"
  run -0 redlock-cli run -k '[a,b]' -- sh -c 'printf "<%s>" "$REDLOCK_KEY"'
  assert_output "<[a,b]>"
}

@test "-c together with -- is refused" {
  run locked -c 'echo no' -- echo no
  assert_failure 64
  assert_equal "${#lines[@]}" 1
  assert_output --partial -- --
}

@test "run without a command is refused" {
  run locked --
  assert_failure 64
  assert_equal "${#lines[@]}" 1
  assert_equal "$(redis 0 dbsize)" 0
}

@test "-s followed by a URL is explained" {
  run redlock-cli run -k demo -s redis://user:secret@127.0.0.1 -- true
  assert_failure 64
  assert_output --partial "-S redis://"
  refute_output --partial secret
}

# --- Looking the command up ---

@test "a command that is not there is 127 before any lock is taken" {
  local name
  for name in no-such-program ./no-such-program /no/such/program ''; do
    run -127 locked -- "$name"
    assert_equal "${#lines[@]}" 1
  done
  assert_equal "$(redis 0 dbsize)" 0
}

# bats test_tags=redis
@test "a command that is not there is 127 without waiting for the lock" {
  redis 0 set demo x
  run -127 locked -w 1h -- no-such-program
  pause_server 0
  run -127 locked -w 1h -- no-such-program
}

@test "a command that cannot be executed is 126 before any lock is taken" {
  echo 'echo no' >"$BATS_TEST_TMPDIR/plain"
  PATH=$BATS_TEST_TMPDIR:$PATH
  local name
  for name in "$BATS_TEST_TMPDIR/plain" plain "$BATS_TEST_TMPDIR" /dev/null; do
    run locked -- "$name"
    assert_failure 126
    assert_equal "${#lines[@]}" 1
  done
  assert_equal "$(redis 0 dbsize)" 0
}

@test "the first executable in PATH is run, even after files that are not executable" {
  mkdir "$BATS_TEST_TMPDIR"/{a,b,c}
  echo no >"$BATS_TEST_TMPDIR/a/tool"
  mkdir "$BATS_TEST_TMPDIR/b/tool"
  executable c/tool <<<'echo found' >/dev/null
  PATH=$BATS_TEST_TMPDIR/no:$BATS_TEST_TMPDIR/a:$BATS_TEST_TMPDIR/b:$BATS_TEST_TMPDIR/c:$PATH \
    run locked -- tool
  assert_success
  assert_output found
}

@test "an empty element of PATH is the current directory" {
  executable tool <<<'echo found' >/dev/null
  cd "$BATS_TEST_TMPDIR"
  PATH=$PATH: run locked -- tool
  assert_output found
}

@test "without PATH the system's programs are found" {
  run env -u PATH "$REDLOCK_CLI" run -k demo -- echo found
  assert_output found
}

@test "when exec fails after the lookup the lock is released and the status is 126" {
  local broken
  broken=$(executable broken <<<'#!/no/such/interpreter')
  redis 0 set demo x # let there be a wait: the lookup is over before it
  start_background waiter redlock-cli run -k demo --status-fd 9 \
    -- "$broken" 9>"$BATS_TEST_TMPDIR/report"
  wait_for_stderr waiter "waiting for demo"
  redis 0 del demo
  wait_background waiter
  assert_equal "$status" 126
  assert_regex "$stderr" "interpreter"
  assert_equal "$(keys_at 0)" ""
  # The lock had been acquired.
  assert_equal "$(redis 0 exists 'redlock:fence:{demo}')" 1
  run cat "$BATS_TEST_TMPDIR/report"
  assert_output --partial '"result":"not_started","exit_code":126'
  assert_output --partial '"released":true'
}

@test "a command that disappears during the wait is 127, and the lock is released" {
  local fleeting
  fleeting=$(executable fleeting <<<'#!/bin/sh')
  redis 0 set demo x
  start_background waiter redlock-cli run -k demo -- "$fleeting"
  wait_for_stderr waiter "waiting for demo"
  rm "$fleeting"
  redis 0 del demo
  wait_background waiter
  assert_equal "$status" 127
  assert_equal "$(keys_at 0)" ""
}

@test "a script without a first line for the kernel is run by the shell" {
  local script
  script=$(executable script <<<'echo "$#:$1:$2"; exit 5')
  run locked -- "$script" -e 'a b'
  assert_equal "$status" 5
  assert_output "2:-e:a b"
}

# --- Signals ---

@test "a closed pipe kills the command as it does without redlock-cli" {
  run env --default-signal=PIPE \
    bash -c 'redlock-cli run -k demo -- yes | head -n 1; exit "${PIPESTATUS[0]}"'
  assert_equal "$status" 141
  assert_output y
  assert_equal "$(keys_at 0)" ""
}

# same_signals WRAPPER…: below it, signal mask and ignored signals are the same with and without
# redlock-cli.
same_signals() {
  local look=(grep -E '^Sig(Blk|Ign):' /proc/self/status) outside
  outside=$("$@" "${look[@]}")
  run "$@" redlock-cli run -k demo -- "${look[@]}"
  assert_success
  assert_equal "$*: $output" "$*: $outside"
}

@test "the command has the signal mask and the ignored signals of the caller" {
  same_signals env --default-signal
  same_signals env --default-signal --ignore-signal=PIPE
  same_signals env --default-signal \
    --ignore-signal=HUP,INT,QUIT,TERM,USR1,USR2,TSTP,TTIN,TTOU,WINCH,CONT
  same_signals env --default-signal --block-signal=HUP,INT,USR1,WINCH,ALRM
  same_signals env --ignore-signal --block-signal
}

@test "the command inherits SIGCHLD ignored or blocked, and its status is returned" {
  same_signals env --default-signal --ignore-signal=CHLD
  same_signals env --default-signal --block-signal=CHLD
  run env --ignore-signal=CHLD --block-signal=CHLD "$REDLOCK_CLI" run -k demo -- sh -c 'exit 5'
  assert_equal "$status" 5
}
