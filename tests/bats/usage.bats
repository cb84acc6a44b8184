#!/usr/bin/env bats
# Help, and the messages about unknown words.
load helper/common

setup() { setup_one_server; }

# --- Help ---

@test "without arguments a five-line overview is shown: 64" {
  run -64 --separate-stderr redlock-cli
  assert_equal "$output" ""
  assert_equal "$(wc -l <<<"$stderr")" 5
  assert_regex "$stderr" "redlock-cli run -k KEY CMD"
  assert_regex "$stderr" "redlock-cli help"
}

@test "help, help COMMAND and version equal --help and --version" {
  local command
  assert_equal "$(redlock-cli help)" "$(redlock-cli --help)"
  assert_equal "$(redlock-cli help)" "$(redlock-cli -h)"
  assert_equal "$(redlock-cli version)" "$(redlock-cli --version)"
  assert_equal "$(redlock-cli version)" "$(redlock-cli -V)"
  for command in run acquire extend release status doctor completion help version; do
    assert_equal "$(redlock-cli help "$command")" "$(redlock-cli "$command" --help)"
    assert_equal "$(redlock-cli help "$command")" "$(redlock-cli "$command" -h)"
  done
}

@test "--version names the commit, the libraries and what the build can do, a line each" {
  run -0 --separate-stderr redlock-cli --version
  assert_line --index 0 --regexp '^redlock-cli [0-9]+\.[0-9]+\.[0-9]+$'
  assert_line --index 1 --regexp '^commit: ([0-9a-f]{7,40}(\+changes)?|unknown)$'
  assert_line --index 2 --regexp '^compiler: [A-Za-z]+ [0-9.]+$'
  assert_line --regexp '^(shared|linked in): hiredis [0-9.]+ \(BSD-3-Clause\)'
  assert_line --regexp '^linked in: .*Lua 5\.[0-9.]+ \(MIT\), .*Asio [0-9.]+'
  assert_line --regexp '^(loaded when a server wants TLS|linked in): .*OpenSSL 3[0-9.]+ \(Apache-2.0\)'
  assert_line --regexp '^servers: redis:// rediss:// unix:// .*local:$'
  assert_line "isolation: none|cgroup|pidns"
  refute_line --partial unknown\ 
  assert_equal "$stderr" ""
}

@test "help is shown despite other errors, and without reading the settings" {
  export REDLOCK_CONFIG=/no/such/file
  run -0 redlock-cli run --bogus --ttl 5x --help
  assert_line "Usage: redlock-cli run -k KEY [OPTIONS] [--] CMD [ARG...]"
  run -0 redlock-cli help run
  run -0 redlock-cli version
  # Words after the command belong to it.
  unset REDLOCK_CONFIG
  run -0 redlock-cli run -k demo sh -c 'printf "<%s>" "$@"' - --help
  assert_output "<--help>"
}

@test "a refused value, or a letter of a cluster, is not a request for help: 64" {
  local why="needs a value, and" ran=$BATS_TEST_TMPDIR/ran
  assert_refused 64 "--key $why -hotfix looks like an option" redlock-cli run -S local: -k -hotfix \
    -- touch "$ran"
  assert_refused 64 "--key $why -h looks like an option" redlock-cli status -k -h --exit-code
  run -64 --separate-stderr redlock-cli acquire --ttl 5s --export -k --help
  assert_output "unset REDLOCK_KEY REDLOCK_TOKEN REDLOCK_FENCE REDLOCK_LEASE; (exit 64)"
  assert_regex "$stderr" "--key $why --help looks like an option"
  assert_refused 64 "--wait $why -h looks like an option" redlock-cli run -k demo -w -h \
    -- touch "$ran"
  assert_refused 64 "--command $why -hello looks like an option" redlock-cli run -k demo -c '-hello'
  assert_refused 64 "unknown option" redlock-cli -hello run
  assert_refused 64 "unknown option" redlock-cli -Vz
  assert_refused 64 "unknown option -Z" redlock-cli run -hZ
  assert_refused 64 "--note $why" redlock-cli run -nh --note -n
  assert [ ! -e "$ran" ]
  # A cluster of known letters requests help as well as a separate word.
  assert_equal "$(redlock-cli run -nh)" "$(redlock-cli run --help)"
}

@test "the help of run fits 60 lines, and each command names its own exit codes" {
  run -0 redlock-cli run --help
  assert [ "${#lines[@]}" -le 60 ]
  assert_line --regexp '^  --once-per DUR .* Skip CMD if a run of this lock succeeded less than$'
  refute_output --partial --replicas
  assert_output --partial "All options: --help-all. Manual: redlock-cli-run(1)."
  assert_line "  124       timed out: --max-hold stopped the command"
  run -0 redlock-cli status --help
  assert_line "    1       --max-age, --max-held: beyond the limit, or not known"
  assert_line "   75       --exit-code: the lock is held"
  refute_line --regexp '^  124 '
  assert_equal "$(redlock-cli run --help --help-all)" "$(redlock-cli run --help-all)"
}

@test "help with all options shows them in groups, with choices and defaults" {
  run -0 redlock-cli run --help-all
  local heading
  for heading in Lock: Command: Servers: TLS: Output:; do assert_line "$heading"; done
  assert_output --regexp $'\nLock:\n  -k,--key KEY .*\n  -n,--nonblock,--nb '
  assert_line --regexp '^  --on-lost kill\|term\|warn '
  run -0 bash -c 'redlock-cli run --help-all | tr -s "\n " " "'
  assert_output --regexp '-E,--conflict-exit-code N [^(]*\(0 to 255\)[^(]*\(default: 75\)'
  assert_output --regexp \
    '--on-lost kill.term.warn .*\(default: kill\) '\
'--grace DUR .*\(default: a fifth of the ttl, at most 5s\)'
  assert_output --partial '(default: infinity)'
  run -0 redlock-cli --help
  refute_line Servers:
}

@test "the help of a command says nothing of another one's use of an option" {
  run -0 bash -c 'redlock-cli stop --help-all | tr -s "\n " " "'
  assert_output --partial "--if-fence N Only if the lock still has this fence --reason"
  run -0 bash -c 'redlock-cli release --help-all | tr -s "\n " " "'
  assert_output --partial "--if-fence N Only if the lock still has this fence; of a hold, or with"
  run -0 bash -c 'redlock-cli hold --help-all | tr -s "\n " " "'
  assert_output --partial "--token-file FILE The file of the lease; written with mode 0600 --slot"
}

@test "help is folded to the width of the terminal, to 80 columns without one" {
  local columns
  run -0 bash -c 'for c in run acquire extend release status doctor help; do
      redlock-cli $c --help
      redlock-cli $c --help-all
    done | awk "length > 80"'
  assert_output ""
  for columns in 60 120; do
    run -0 script -qec "stty cols $columns; redlock-cli run --help" /dev/null
    # Examples and the lists of spellings of an option are not folded.
    assert_equal "$(tr -d '\r' <<<"$output" | grep -vE '^  (redlock-cli|-)' |
      awk -v columns="$columns" 'length > columns')" ""
    assert [ "$(tr -d '\r' <<<"$output" |
      awk '{ if (length > longest) longest = length } END { print longest }')" -gt \
      $((columns - 12)) ]
  done
}

@test "help that cannot be written is 71, unless the reader has closed the pipe" {
  run -71 sh -c 'redlock-cli help run >/dev/full'
  open_broken_pipe 7
  run -0 env --default-signal=PIPE sh -c 'redlock-cli help run >&7'
}

# --- Words that are not known ---

@test "a misspelt command or option is named, with a suggestion: 64" {
  assert_refused 64 "unknown command 'xyz'; the commands are run, acquire" \
    redlock-cli xyz -k demo true
  assert_refused 64 "unknown command 'rum'; did you mean 'run'?" redlock-cli rum -k demo true
  assert_refused 64 "unknown command 'statsu'; did you mean 'status'?" redlock-cli statsu
  assert_refused 64 "unknown command 'xyz'; the commands are run" redlock-cli help xyz
  assert_refused 64 "unknown option --wiat; did you mean '--wait'?" \
    redlock-cli run -k demo --wiat 5s true
  assert_refused 64 "unknown option --no-wait; did you mean '--nonblock'?" \
    redlock-cli run -k demo --no-wait true
  assert_refused 64 "unknown option --lock-timeout; did you mean '--wait'?" \
    redlock-cli run -k demo --lock-timeout 5 true
  assert_refused 64 \
    "unknown option --nonblok; did you mean '--nonblock'? See \`redlock-cli run --help\`" \
    redlock-cli run -k demo --nonblok=x true
  assert_refused 64 "unknown option -Z; see \`redlock-cli run --help\`" \
    redlock-cli run -k demo -nZ true
  assert_refused 64 "= after an option that takes no value" redlock-cli run -k demo -q=5 true
  assert_refused 64 "unknown option --versoin" redlock-cli --versoin
  assert_refused 64 "unknown option --exit; did you mean '--exit-code'?" redlock-cli status --exit
  assert_refused 64 "unknown command ''; the commands are run" redlock-cli ''
  assert_refused 64 "unknown command 'a b'; the commands are run" redlock-cli 'a b'
}

@test "what other tools call a command or an option leads to ours" {
  local word
  for word in ls list who ps show info inspect get top queue; do
    assert_refused 64 "unknown command '$word'; did you mean 'status'?" redlock-cli "$word"
  done
  for word in kill cancel abort terminate; do
    assert_refused 64 "unknown command '$word'; did you mean 'stop'?" redlock-cli "$word" demo
  done
  for word in history log logs why runs last; do
    assert_refused 64 "unknown command '$word'; \`redlock-cli status KEY --runs\` shows past runs" \
      redlock-cli "$word" demo
  done
  for word in drain cordon pause; do
    assert_refused 64 "unknown command '$word'; did you mean 'hold'?" redlock-cli "$word" demo
  done
  for word in unpause uncordon resume; do
    assert_refused 64 "unknown command '$word'; \`redlock-cli release KEY\` lifts a hold" \
      redlock-cli "$word" demo
  done
  for word in leader elect wait; do
    assert_refused 64 "unknown command '$word'; \`redlock-cli run -k KEY " redlock-cli "$word" demo
  done
  assert_refused 64 "unknown command 'sem'; \`redlock-cli run -k KEY --slots N CMD\`" \
    redlock-cli sem -j4 make
  assert_refused 64 "\`redlock-cli status KEY --max-age DUR\` checks the last run" redlock-cli check
  for word in test ping health; do
    assert_refused 64 "unknown command '$word'; did you mean 'doctor'?" redlock-cli "$word"
  done
  for word in max-time max-runtime kill-after time-limit limit-time; do
    assert_refused 64 "unknown option --$word; did you mean '--max-hold'?" \
      redlock-cli run -k demo "--$word" 6h true
  done
  assert_refused 64 "unknown option --tls; TLS is part of the URL: --server rediss://HOST:PORT. See" \
    redlock-cli run -k demo --tls true
  assert_refused 64 "unknown option --nowait; did you mean '--nonblock'?" \
    redlock-cli run -k demo --nowait true
  for word in cancel cancel-in-progress cancel-running kill preempt takeover take-over; do
    assert_refused 64 "unknown option --$word; did you mean '--replace'?" \
      redlock-cli run -k demo "--$word" true
  done
  for word in --jobs -j -j4 --max --limit --concurrency; do
    assert_refused 64 "unknown option $word; did you mean '--slots'?" \
      redlock-cli run -k demo "$word" 4 true
  done
  assert_refused 64 "unknown option --try; did you mean '--nonblock'?" \
    redlock-cli run -k demo --try true
  assert_refused 64 "unknown option --once-a-day; did you mean '--once-per'?" \
    redlock-cli run -k demo --once-a-day true
  for word in --port -p; do
    assert_refused 64 "unknown option $word; servers are URLs: --server redis://HOST:PORT. See" \
      redlock-cli run -k demo "$word" 6379 true
  done
  for word in -o -ox -xo --close; do
    assert_refused 64 "; leave it out: the command does not inherit the lock" \
      redlock-cli run -k demo "$word" true
  done
  for word in -n3 -n=3; do
    assert_refused 64 "-n takes no value; --slots 3 lets 3 commands run at once" \
      redlock-cli run -k demo "$word" true
  done
}

@test "no wrong word leads to --force, and no misspelling to stop or release" {
  local word
  for word in break steal force-unlock unlock rm clear free delete; do
    assert_refused 64 "unknown command '$word'; \`redlock-cli stop KEY\` ends the command that holds" \
      redlock-cli "$word" demo
    assert_regex "$stderr" "; of a dead holder: man redlock-cli-release$"
    refute_regex "$stderr" "--force"
  done
  for word in stopp step shop relase; do
    assert_refused 64 "unknown command '$word'; the commands are run" redlock-cli "$word" demo
  done
  assert_refused 64 "unknown option --forse; see" redlock-cli release -k demo --forse
}

@test "text for a shell in place of a command is named as such: 127" {
  local text
  for text in 'echo hi' 'a && b' cd 'make;' 'cat<x'; do
    assert_refused 127 "not found; -c runs the text of a shell" redlock-cli run -k demo -- "$text"
  done
  assert_refused 127 "FOO=bar: not found; env(1) sets variables" \
    redlock-cli run -k demo -- FOO=bar make
  assert_refused 127 "no-such-program: not found" redlock-cli run -k demo -- no-such-program
  refute_regex "$stderr" "-c runs"
}

@test "an option of another command, or before the command, is refused with its place" {
  assert_refused 64 "--export is not an option of run, but of acquire" \
    redlock-cli run -k demo --export true
  assert_refused 64 "--reason is not an option of hold; with hold it is --note" \
    redlock-cli hold demo --for 1h --reason broken
  assert_refused 64 "--note is not an option of stop; with stop it is --reason" \
    redlock-cli stop demo --note broken
  assert_refused 64 "-t is not an option of hold; with hold it is --for" redlock-cli hold demo -t 1h
  assert_refused 64 "--for is not an option of run; with run it is --max-hold" \
    redlock-cli run -k demo --for 1h true
  assert_refused 64 "-k belongs after the command: run, acquire" redlock-cli -k demo run true
  assert_refused 64 "name a command: run, acquire" redlock-cli --
}

@test "an extra word is refused: 64" {
  local more="takes one KEY, others with -k, and no command"
  assert_refused 64 "unexpected argument bogus: acquire $more" \
    redlock-cli acquire -k demo -t 5s bogus
  assert_refused 64 "unexpected argument bogus: acquire $more" redlock-cli acquire demo -t 5s bogus
  assert_refused 64 "acquire takes no command after --" redlock-cli acquire -t 5s demo -- bogus
  assert_refused 64 "unexpected argument bogus: version takes options alone" \
    redlock-cli version bogus
  assert_refused 64 "unexpected argument bogus" redlock-cli help run bogus
}

@test "several keys where only one is possible, and two output formats, are refused: 64" {
  assert_refused 64 "--key: doctor tries one key at a time" redlock-cli doctor -k demo -k other
  assert_refused 64 "--key: REDLOCK_TOKEN is for one key; REDLOCK_LEASE holds several" \
    env REDLOCK_TOKEN="$(printf 'a%.0s' {1..32})" redlock-cli release -k demo -k other
  run -64 --separate-stderr redlock-cli acquire -k demo --json --export
  assert_equal "$stderr" "redlock-cli: --json and --export cannot be combined"
}

@test "settings for which the default ttl is too short are 64 if one is on the command line, else 78" {
  assert_refused 78 "with --grace 20s the smallest that works is" \
    env REDLOCK_GRACE=20s redlock-cli run -k demo -- true
  assert_refused 64 "with --grace 20s the smallest that works is" \
    redlock-cli run --grace 20s -k demo -- true
}

@test "an unknown word is reported in the requested format, wherever that option stands" {
  run -64 --separate-stderr redlock-cli bogus --json
  assert_equal "$(json '[j["command"], j["result"], j["exit_code"]]')" "['bogus', 'usage', 64]"
  run -64 --separate-stderr redlock-cli status --bogus --ttl 5x --json
  assert_equal "$(json '[j["command"], j["result"], j["exit_code"]]')" "['status', 'usage', 64]"
  run -64 --separate-stderr redlock-cli acquire -k demo --ttl -n --wait 5x --export
  assert_output "unset REDLOCK_KEY REDLOCK_TOKEN REDLOCK_FENCE REDLOCK_LEASE; (exit 64)"
  run -64 --separate-stderr redlock-cli run --bogus 5s -k --status-fd 8 \
    -- true 8>"$BATS_TEST_TMPDIR/report"
  output=$(<"$BATS_TEST_TMPDIR/report")
  assert_equal "$(json '[j["command"], j["result"], j["exit_code"]]')" "['run', 'usage', 64]"
  # eval of an unknown command fails, too; run has no --export.
  run -64 --separate-stderr redlock-cli acqiure -k demo --ttl 5s --export
  assert_output "unset REDLOCK_KEY REDLOCK_TOKEN REDLOCK_FENCE REDLOCK_LEASE; (exit 64)"
  run -64 --separate-stderr redlock-cli run -k demo --bogus 5s --export
  assert_output ""
  # Words after the command are not ours.
  run -64 --separate-stderr redlock-cli run true --json
  assert_equal "$(wc -l <<<"$stderr")" 1
}

# --- Keys as plain words ---

@test "status, release and doctor take keys as plain words, between options or after them" {
  run -0 redlock-cli acquire -k one -t 60s
  run -0 redlock-cli acquire -k two -t 60s
  run -0 --separate-stderr redlock-cli status one --json two -k three
  assert_equal "$(json 'sorted((k["key"], k["state"]) for k in j["locks"])')" \
    "[('one', 'held'), ('three', 'free'), ('two', 'held')]"
  run -75 redlock-cli status one --exit-code
  run -0 redlock-cli release --force one -- two
  assert_equal "$(redis 0 exists one two)" 0
  run -0 redlock-cli status -- -k
  assert_output --partial -- "-k: free"
  eval "$(redlock-cli acquire -k demo -t 60s --export)"
  # That lease is not meant, and the lock of the named key is free.
  run -0 redlock-cli release other
  redlock-cli acquire -k third -t 60s --token-file "$BATS_TEST_TMPDIR/lease"
  assert_refused 64 "the lease is for third, not for other" \
    redlock-cli release other --token-file "$BATS_TEST_TMPDIR/lease"
  run -0 redlock-cli release demo
  assert_equal "$(redis 0 exists demo)" 0
  run -1 redlock-cli doctor probe
  assert_equal "$(redis 0 exists 'redlock:fence:{probe}')" 1
}

@test "acquire and extend take one key as a plain word" {
  eval "$(redlock-cli acquire demo --ttl 60s --export)"
  assert_equal "$REDLOCK_KEY" demo
  run -0 redlock-cli extend demo --ttl 60s
  assert_refused 64 "the lease is for demo, not for other" redlock-cli extend other --ttl 60s
  assert_refused 64 "acquire needs --ttl DUR" redlock-cli acquire demo
  assert_regex "$stderr" "--detach --max-hold DUR --token-file FILE \(over the steps of a CI job\)"
}

@test "a plain word that looks like a server is not a key: 64" {
  assert_refused 64 "-S redis://h:1; a key like this is named with -k" \
    redlock-cli status redis://h:1
  assert_refused 64 "-S redis://h:1" redlock-cli run -k demo redis://h:1
  assert_refused 64 "-S local:" redlock-cli run -s local: -k demo true
  local command
  for command in run acquire extend release status doctor; do
    assert_refused 64 "capital -S: -S redis://h" redlock-cli "$command" -s redis://h
    assert_refused 64 "capital -S: -S redis://h" redlock-cli "$command" -vsredis://h
    assert_refused 64 "capital -S: -S cluster://h" redlock-cli "$command" -scluster://h
    assert_refused 64 "capital -S: -S local:" redlock-cli "$command" -q -slocal:
  done
  run -0 redlock-cli run -s -k demo printf %s -sredis://h
  assert_output -- -sredis://h
  run -0 redlock-cli status -k redis://h:1
  assert_output --partial "redis://h:1: free"
}

@test "a word of the command line is shown escaped once, and in a form that can be typed again" {
  assert_refused 64 "unknown signal '\x1b[1m'" redlock-cli run -k demo --stop-signal=$'\e[1m' true
  assert_refused 64 "'5\\\\x' has an unknown unit" redlock-cli run -k demo -w '5\x' true
  assert_refused 64 "write --key='-a\b'" redlock-cli run -k '-a\b' true
  assert_refused 64 " 'a\b'" redlock-cli acquire -k demo 'a\b'
  assert_refused 64 " 'a\b' is" redlock-cli run -k demo -c true 'a\b'
}

@test "an empty plain word is an empty key" {
  assert_refused 64 "the key is empty" redlock-cli status ''
  assert_refused 64 "the key is empty" redlock-cli release '' --force
}
