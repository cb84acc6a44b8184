#!/usr/bin/env bats
# bats file_tags=smoke
# Any bad answer of a server: no vote, an exit status, and one line that explains it.
load helper/common

# start_scripted HOW BYTES: a server that answers with BYTES (with escapes as for printf %b);
# SCRIPTED_URL is its URL.
start_scripted() {
  local name=scripted$((++scripted))
  printf '%b' "$2" >"$BATS_TEST_TMPDIR/$name"
  serve_file "$1" "$BATS_TEST_TMPDIR/$name"
}

# serve_file HOW FILE: the same with the bytes of a file.
serve_file() {
  local name=scripted$((++scripted))
  start_background "$name" /usr/bin/python3 "$BATS_TEST_DIRNAME/helper/scripted_server.py" "$@"
  wait_for_stdout "$name"
  SCRIPTED_URL=redis://127.0.0.1:$(<"$(background_stdout "$name")")
}

# means CODE TEXT HOW BYTES: with only such a server `run -n` exits with CODE and one line with
# TEXT, and runs nothing; as one of three it blocks no client and gives none a vote.
means() {
  local code=$1 text=$2 patience=3s
  start_scripted "$3" "$4"
  # Long enough for an answer on a slow machine; a query without an answer takes all of it.
  [[ $text != "no answer"* ]] || patience=700ms
  assert_refused "$code" "$text" redlock-cli run -S "$SCRIPTED_URL" -k demo -n \
    --server-timeout "$patience" -- touch "$BATS_TEST_TMPDIR/ran"
  [[ $stderr == *"$SCRIPTED_URL: "* ]]
  ((${#SERVER_PID[@]})) || return 0
  run -0 redlock-cli run -S "$SCRIPTED_URL,${SERVER_URL[0]},${SERVER_URL[1]}" -k demo -n \
    --server-timeout 3s -- true
  run redlock-cli run -S "$SCRIPTED_URL,${SERVER_URL[0]},redis://127.0.0.1:1" -k demo -n \
    --server-timeout "$patience" -- touch "$BATS_TEST_TMPDIR/ran"
  assert_equal "with one vote of three: $status" "with one vote of three: 69"
  assert [ ! -e "$BATS_TEST_TMPDIR/ran" ]
  assert_unlocked demo 0 1
}

@test "a server that cannot serve now: 69, and the reason" {
  start_servers 2
  means 69 "it is loading its data" stay '-LOADING Redis is loading the dataset in memory\r\n'
  means 69 "it is busy with a script of another client" stay \
    '-BUSY Redis is busy running a script.\r\n'
  means 69 "it is a read-only replica; name its master" stay \
    "-READONLY You can't write against a read only replica.\r\n"
  means 69 "it is out of memory (maxmemory)" stay \
    "-OOM command not allowed when used memory > 'maxmemory'.\r\n"
  means 69 "it cannot save to disk, and refuses writes for that: see its log" stay \
    '-MISCONF Redis is configured to save RDB snapshots.\r\n'
  means 69 "it has too few replicas to accept writes (min-replicas-to-write)" stay \
    '-NOREPLICAS Not enough good replicas to write.\r\n'
  means 69 "it is a replica that lost its master: name the master" stay \
    '-MASTERDOWN Link with MASTER is down.\r\n'
  means 69 "its cluster is down" stay '-CLUSTERDOWN Hash slot not served\r\n'
  means 69 "its cluster is moving this key" stay \
    '-TRYAGAIN Multiple keys request during rehashing of slot\r\n'
  means 69 "it reports an error: ERR something new" stay '-ERR something new\r\n'
}

@test "a server that denies access: 77" {
  means 77 "set REDISCLI_AUTH or --password-file" stay '-NOAUTH Authentication required.\r\n'
  means 77 "wrong user or password" stay \
    '-WRONGPASS invalid username-password pair or user is disabled.\r\n'
  means 77 "'eval' command" stay \
    "-NOPERM this user has no permissions to run the 'eval' command\r\n"
  means 77 "protected mode" close '-DENIED Redis is running in protected mode.\r\n'
}

@test "a password that a server repeats is shown nowhere" {
  local answer
  for answer in '-ERR what is AUTH S3cretPw?\r\n' '-NOPERM S3cretPw\r\n' '-S3cretPw\r\n'; do
    start_scripted stay "$answer$answer"
    REDISCLI_AUTH=S3cretPw run redlock-cli run -S "$SCRIPTED_URL" -k demo -n --json -vv \
      --server-timeout 4s -- true
    assert_failure
    assert_output --partial '***'
    refute_output --partial S3cretPw
  done
}

@test "doctor, which sends several requests at once, also reports a refused connection" {
  start_scripted close '-DENIED Redis is running in protected mode.\r\n'
  run -69 redlock-cli doctor -S "$SCRIPTED_URL" --server-timeout 20s
  assert_output --partial "protected mode"
  start_scripted close '-ERR max number of clients reached\r\n'
  run -69 redlock-cli doctor -S "$SCRIPTED_URL" --server-timeout 20s
  assert_output --partial "it has too many clients (maxclients)"
}

@test "a server that is unfit for locks: 78" {
  means 78 "it is part of a Redis Cluster" stay '-MOVED 3999 127.0.0.1:6381\r\n'
  means 78 "it is part of a Redis Cluster" stay '-MOVED 3999 :0\r\n'
  means 78 "it is part of a Redis Cluster" stay '-MOVED 99999999999999999999 [::]:-1\r\n'
  means 78 "it is part of a Redis Cluster" stay '-ASK 3999 127.0.0.1:0\r\n'
  means 78 "unknown command" stay \
    "-ERR unknown command 'EVAL', with args beginning with: 'secret' \r\n"
}

@test "a malformed reply to a script is not a vote" {
  start_servers 2
  local bytes
  for bytes in '+OK\r\n' ':1\r\n' '$-1\r\n' '*-1\r\n' '*0\r\n' '$7\r\ngranted\r\n' \
    '*1\r\n$7\r\ngranted\r\n' \
    '*3\r\n$7\r\ngranted\r\n$1\r\n1\r\n:1\r\n' '*3\r\n$7\r\ngranted\r\n$2\r\n-1\r\n$2\r\nid\r\n' \
    '*3\r\n$7\r\ngranted\r\n$16\r\n4503599627370497\r\n$2\r\nid\r\n' \
    '*3\r\n+granted\r\n$1\r\n1\r\n$2\r\nid\r\n' \
    '*1\r\n*3\r\n$7\r\ngranted\r\n$1\r\n1\r\n$2\r\nid\r\n'; do
    means 69 "malformed reply to a lock script" stay "$bytes"
  done
}

@test "a reply that is not Redis protocol, or is too large, ends the connection" {
  start_servers 2
  local bytes
  for bytes in 'HTTP/1.1 400 Bad Request\r\n\r\n' 'SSH-2.0-OpenSSH_9.2\r\n' \
    '220 mail.example ESMTP\r\n' '\0\0\0\0\0\0\0\0' '*2147483647\r\n' \
    '*-7\r\n' '$65537\r\n'"$(printf '%065537d' 0)"'\r\n' '>2\r\n$4\r\npush\r\n$1\r\nx\r\n' \
    '%1\r\n$1\r\na\r\n$1\r\nb\r\n' ',1.5\r\n' '#t\r\n' '_\r\n' \
    '*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n'; do
    means 69 "malformed or too large reply" stay \
      "$bytes"
  done
}

@test "half a reply does not count" {
  start_servers 2
  means 69 "it closed the connection" close '*3\r\n$7\r\ngranted\r\n$1\r\n1\r\n$2\r\ni'
  means 69 "it closed the connection" close ''
  means 69 "no answer within " stay '*3\r\n$7\r\ngranted\r\n$1\r\n1\r\n$2\r\ni'
  means 69 "no answer within " stay ''
  means 69 "no answer within " stay '$99999999999\r\n'
  means 69 "no answer within " drip \
    '*6\r\n$7\r\ngranted\r\n$1\r\n1\r\n$2\r\nid\r\n$0\r\n\r\n*13\r\n$1\r\n1\r\n$0\r\n\r\n'\
':0\r\n:0\r\n:-1\r\n$0\r\n\r\n:0\r\n:0\r\n$0\r\n\r\n$0\r\n\r\n:-1\r\n$0\r\n\r\n$0\r\n\r\n'
}

@test "a server that never stops sending is disconnected" {
  means 69 "too large" flood '*64\r\n$60000\r\n'"$(printf '%060000d' 0)"'\r\n'
  means 69 "malformed reply to a lock script" flood '+OK\r\n'
}

# bats test_tags=unsanitized
@test "many small replies within a large one are limited in memory like the large one" {
  local page=$BATS_TEST_TMPDIR/page
  /usr/bin/python3 -c 'import sys
row = b"*255\r\n" + b":1\r\n" * 255
sys.stdout.buffer.write(b"*2\r\n$1\r\n0\r\n*16384\r\n" + row * 16000)' >"$page"
  serve_file stay "$page"
  local usual
  usual=$(memory_of redlock-cli status -S redis://127.0.0.1:1)
  run -0 memory_of redlock-cli status -S "$SCRIPTED_URL" --server-timeout 20s
  assert_regex "$output" "too large"
  assert [ "${output%% *}" -lt $((4 * ${usual%% *})) ]
}

# memory_of CMD…: its peak memory in KiB, and its output.
memory_of() {
  /usr/bin/python3 -c 'import resource, subprocess, sys
said = subprocess.run(sys.argv[1:], capture_output=True, text=True).stdout
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, said)' "$@"
}

@test "escape sequences in a server's reply do not reach the terminal" {
  means 69 '\x1b]0;title\x07' stay '-ERR \033]0;title\007\302\233\342\200\256\r\n'
  # A foreign lock is busy, whatever the name of its type; a line says so.
  start_scripted stay \
    '*10\r\n$4\r\nheld\r\n$2\r\nid\r\n$7\r\n\033[2Jset\r\n:-1\r\n:0\r\n$0\r\n\r\n'\
':-1\r\n:0\r\n$0\r\n\r\n'\
'*13\r\n$1\r\n1\r\n$0\r\n\r\n:0\r\n:0\r\n:-1\r\n$0\r\n\r\n'\
':0\r\n:0\r\n$0\r\n\r\n$0\r\n\r\n:-1\r\n$0\r\n\r\n$0\r\n\r\n'
  assert_refused 75 '\x1b[2Jset' redlock-cli run -S "$SCRIPTED_URL" -k demo -n \
    --server-timeout 4s -- true
}
