#!/usr/bin/env bats
# The messages about a lock from the wait to the release; the note of a CI job; the system log.
load helper/common

setup() {
  setup_one_server
  allow_late_answers
}

readonly SPAN='[0-9.]+(ms|s|m[0-9]*s?)'

@test "an announced wait has an end" {
  hold theirs
  start_background ours redlock-cli run -k demo -- true
  wait_for_stderr ours "waiting for demo"
  release_hold theirs
  wait_background ours
  assert_regex "$stderr" \
    "waiting for demo: held by .*"$'\n'"redlock-cli: demo: acquired after $SPAN\$"
}

@test "a wait that was not announced, or with -q, leaves no message" {
  run -0 --separate-stderr redlock-cli run -k demo -- true
  assert_equal "$stderr" ""
  hold theirs
  start_background ours redlock-cli run -q -k demo -- true
  wait_for_queued 1
  release_hold theirs
  wait_background ours
  assert_equal "$stderr" ""
}

@test "acquire also reports the end of its wait" {
  hold theirs
  start_background ours redlock-cli acquire -k demo --ttl 60s
  wait_for_stderr ours "waiting for demo"
  release_hold theirs
  wait_background ours
  assert_regex "$stderr" "redlock-cli: demo: acquired after $SPAN\$"
}

@test "-v: fence and votes at the grant, time and status at the end" {
  run -3 --separate-stderr redlock-cli run -v -k demo -- sh -c 'exit 3'
  assert_regex "$stderr" \
    "^redlock-cli: demo: acquired after $SPAN; fence [0-9]+; 1 of 1 server"$'\n'\
"redlock-cli: demo: released after $SPAN; exit status 3\$"
  run --separate-stderr redlock-cli run -v -k demo -- sh -c 'kill -KILL $$'
  assert_regex "$stderr" "released after $SPAN; died of SIGKILL\$"
  run -0 --separate-stderr redlock-cli run -v -k demo --min-hold 60s -- true
  assert_regex "$stderr" \
    "done after $SPAN; exit status 0; kept for another $SPAN \\(--min-hold\\)\$"
}

@test "-v: a nested run, or one under a lease of acquire, reports that it released nothing" {
  local told
  told="demo: done after $SPAN; exit status 0; the lock is that of an enclosing run or acquire\$"
  run -0 --separate-stderr redlock-cli run -k demo -- redlock-cli run -v -k demo -- true
  assert_regex "$stderr" "$told"
  eval "$(redlock-cli acquire -k demo --ttl 60s --export)"
  run -0 --separate-stderr redlock-cli run -v -k demo -- true
  assert_regex "$stderr" "$told"
}

# bats test_tags=redis
@test "-v: of several servers those that did not vote are named" {
  start_servers 1
  run -0 --separate-stderr redlock-cli run -v -S "$SERVERS" -S unix:///nonexistent/redis \
    -k demo -- true
  assert_regex "$stderr" \
    "acquired after $SPAN; fence [0-9]+; 2 of 3 servers; unix:///nonexistent/redis: "
}

# --- the note of a CI job ---

# note VARIABLE=VALUE…: the note that a run in this environment has.
note() {
  local -a options=()
  [[ ! -v NOTE ]] || options=(--note "$NOTE")
  env "$@" redlock-cli run -k demo "${options[@]}" -- redlock-cli status -k demo --json |
    jq -r '.locks[0].holder.note'
}

@test "the URL of a CI job is the note" {
  assert_equal \
    "$(note GITHUB_SERVER_URL=https://github.com GITHUB_REPOSITORY=a/b GITHUB_RUN_ID=7)" \
    https://github.com/a/b/actions/runs/7
  assert_equal "$(note CI_JOB_URL=https://gitlab/j/1 CI_PIPELINE_URL=https://gitlab/p/1)" \
    https://gitlab/j/1
  assert_equal "$(note JENKINS_URL=http://ci/ BUILD_URL=http://ci/job/x/3/)" http://ci/job/x/3/
  assert_equal \
    "$(note BUILDKITE_BUILD_URL=https://buildkite.com/o/p/builds/1 BUILDKITE_JOB_ID=0f)" \
    'https://buildkite.com/o/p/builds/1#0f'
  assert_equal "$(note CIRCLE_BUILD_URL=https://circleci.com/gh/a/b/1)" \
    https://circleci.com/gh/a/b/1
  assert_equal \
    "$(note SYSTEM_COLLECTIONURI=https://dev.azure.com/o/ SYSTEM_TEAMPROJECTID=p BUILD_BUILDID=9)" \
    'https://dev.azure.com/o/p/_build/results?buildId=9'
  assert_equal "$(note DRONE_BUILD_LINK=https://drone/a/b/2)" https://drone/a/b/2
  assert_equal "$(note CI_PIPELINE_URL=https://woodpecker/repos/1/pipeline/2)" \
    https://woodpecker/repos/1/pipeline/2
}

@test "a URL of a CI job that is too long for a note is shortened" {
  local url
  url=https://gitlab/$(printf 'x%.0s' {1..600})
  assert_equal "$(note CI_JOB_URL="$url")" "${url:0:509}…"
}

@test "--note overrides it, and an empty one disables it" {
  NOTE=mine assert_equal "$(NOTE=mine note CI_JOB_URL=https://gitlab/j/1)" mine
  assert_equal "$(NOTE='' note CI_JOB_URL=https://gitlab/j/1)" ""
  assert_equal "$(note REDLOCK_NOTE= CI_JOB_URL=https://gitlab/j/1)" ""
}

@test "an unsuitable URL is not used as the note" {
  local value
  for value in "" gitlab "https://" "https://user:secret@gitlab/j/1" "javascript:x" "https://a b" \
    $'https://a\e[31m'; do
    assert_equal "$(note CI_JOB_URL="$value")" ""
  done
  assert_equal "$(note BUILD_URL=https://elsewhere/1)" ""
  assert_equal "$(note GITHUB_SERVER_URL=https://github.com GITHUB_RUN_ID=7)" ""
}

# --- --syslog ---

# with_log CMD…: runs it with a /dev of its own, whose log writes to the file log. With LOG=full it
# is full of noise, and is not read before the file `read` appears. With LOG=stream it takes
# connections.
with_log() {
  ((EUID == 0)) || skip "needs root"
  start_background log /usr/bin/python3 -uc '
import os, socket, sys, time
if sys.argv[2] == "stream":
    log = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    log.bind(sys.argv[1])
    log.listen()
    print("up")
    while True:
        lines = log.accept()[0].makefile("rb").read().split(b"\0")
        print(*(line.decode() for line in lines[:-1]), "" if lines[-1] == b"" else "no end", sep="\n")
log = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
log.bind(sys.argv[1])
if sys.argv[2] == "full":
    noise = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    noise.setblocking(False)
    try:
        while True: noise.sendto(b"noise", sys.argv[1])
    except BlockingIOError:
        pass
print("up")
while sys.argv[2] == "full" and not os.path.exists(os.path.dirname(sys.argv[1]) + "/read"):
    time.sleep(0.05)
while True: print(log.recv(65536).decode())' "$BATS_TEST_TMPDIR/log" "${LOG-}"
  wait_for_stdout log up
  unshare --mount --propagation private sh -c '
    mkdir "$0/dev" && touch "$0/dev/log" "$0/dev/null" &&
    mount --bind /dev/null "$0/dev/null" && mount --bind "$0/log" "$0/dev/log" &&
    mount --rbind "$0/dev" /dev && exec "$@"' \
    "$BATS_TEST_TMPDIR" "$@"
}
logged() { grep -qE "$1" "$(background_stdout log)"; }

@test "--syslog: messages go to the system log, with -q only there" {
  with_log redlock-cli run -q -v --syslog -k demo -- true 2>"$BATS_TEST_TMPDIR/stderr"
  assert_equal "$(cat "$BATS_TEST_TMPDIR/stderr")" ""
  # user.info and the form that log daemons read.
  wait_until logged \
    "^<14>[A-Z][a-z]{2} [ 0-9][0-9] [0-9:]{8} redlock-cli\[[0-9]+\]: demo: acquired after "
  wait_until logged "redlock-cli\[[0-9]+\]: demo: released after .*; exit status 0$"
}

@test "a log that is a stream gets the messages and the audit trail, too" {
  LOG=stream with_log sh -ec '
    redlock-cli run -q -v --syslog -k demo -- true
    redlock-cli acquire -q -k demo --ttl 60s >/dev/null
    redlock-cli release -q -k demo --force --reason stuck' 2>"$BATS_TEST_TMPDIR/stderr"
  wait_until logged "^<14>.* redlock-cli\[[0-9]+\]: demo: acquired after "
  wait_until logged "redlock-cli\[[0-9]+\]: demo: released after .*; exit status 0$"
  wait_until logged "^<13>.*: demo: .* broke it with .release --force. \(\"stuck\"\)"
  refute logged "no end"
}

@test "--syslog: errors are errors there, and a missing log changes nothing" {
  with_log sh -c 'redlock-cli run --syslog -k demo --max-hold 200ms -- sleep 1000; echo $?' \
    >"$BATS_TEST_TMPDIR/status"
  assert_equal "$(cat "$BATS_TEST_TMPDIR/status")" 124
  wait_until logged "^<11>.*demo: held for 200ms, the limit of --max-hold"
}

@test "--syslog: a full log delays nothing, and gets the number of missed messages" {
  LOG=full with_log redlock-cli run -q -v --syslog -k demo -- \
    sh -c 'touch "$0/read"; until grep -q noise "$0"/background.1.stdout; do sleep 0.1; done' \
    "$BATS_TEST_TMPDIR"
  wait_until logged "redlock-cli\[[0-9]+\]: 1 message was dropped: the system log was not read$"
  wait_until logged "redlock-cli\[[0-9]+\]: demo: released after .*; exit status 0$"
  refute logged "acquired after"
}

# --- The audit trail ---

@test "the system log has each stop request and each broken lock, on both sides, without --syslog" {
  with_log sh -ec '
    for how in stop release; do
      redlock-cli run -k demo -- sh -c "touch \"\$0\"; exec sleep 1000" "$0/$how" &
      until [ -e "$0/$how" ]; do sleep 0.1; done
      case $how in
        stop) redlock-cli stop -k demo --reason "wrong branch" ;;
        release) redlock-cli release -k demo --force --reason stuck ;;
      esac
      wait "$!" || true
    done' "$BATS_TEST_TMPDIR" 2>"$BATS_TEST_TMPDIR/stderr"
  local me
  me="$(id -un)@$(uname -n)"
  wait_until logged "^<13>.*: demo: asked to stop by $me \(\"wrong branch\"\), which is held by $me"
  wait_until logged "^<13>.*: demo: asked to stop by $me \(\"wrong branch\"\); stopping"
  wait_until logged "^<13>.*: demo: $me broke it with .release --force. \(\"stuck\"\): broken; it was"
  wait_until logged "^<13>.*: demo: lost: $me broke it"
}

@test "the system log has a stop request that ends a wait" {
  hold theirs
  with_log sh -ec '
    for how in -q "--json --syslog"; do
      redlock-cli run -k a -k demo $how -- true &
      until redlock-cli status demo | grep -q waiting; do sleep 0.1; done
      redlock-cli stop a -w 60s --reason "not with $how"
      wait "$!" || true
    done'
  local how
  for how in -q "--json --syslog"; do
    wait_until logged \
      "^<13>.*: a, demo: stopped at .*\(\"not with $how\"\); the command was not run"
  done
  release_hold theirs
}

# --- --json ---

@test "run --json: redlock-cli writes only lines of JSON on stderr, the result last" {
  hold holder
  start_background ours redlock-cli run -k demo --json -vv -- true
  wait_for_stderr ours notice
  kill -TERM "${BACKGROUND_PID[ours]}"
  wait_background ours
  assert_equal "$(jq -r '.result // .level' <<<"$stderr" | sort -u | xargs)" \
    "debug interrupted notice"
  assert_equal "$(tail -n 1 <<<"$stderr" | jq -r '.command + " " + (.exit_code | tostring)')" \
    "run 143"
  /usr/bin/python3 "$BATS_TEST_DIRNAME/helper/valid_output.py" <<<"$stderr"
  run -64 --separate-stderr redlock-cli run --json --ttl 5x -k demo -- true
  assert_equal "$(jq -r .result <<<"$stderr")" usage
}
