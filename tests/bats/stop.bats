#!/usr/bin/env bats
# stop: a command under a lock is stopped from any host, and nothing starts before it is dead.
# Quorums are in stop_quorum.bats.
load helper/common
load helper/supervision
load helper/while_pid

# stop WORD…: stops the holder of the key demo, with time for a busy machine.
stop() { redlock-cli stop demo -w 60s --server-timeout 4s "$@"; }

# The result of `stop --json`, in $output.
result() { jq -r '"\(.result) \(.exit_code)"' <<<"$output"; }

# Whether each line of stdin has the documented shape.
valid() { /usr/bin/python3 "$BATS_TEST_DIRNAME/helper/valid_output.py"; }

has_stop_request() {
  redlock-cli status "${1-demo}" --json | jq -e '.locks[0].holder.stop_request' >/dev/null
}

# bats test_tags=redis
@test "the whole tree gets TERM, then KILL, and is dead before the lock is free, whatever --on-lost says" {
  await_lock
  start_tree ours -t 12s --grace 300ms --on-lost term --events-fd 7 7>"$BATS_TEST_TMPDIR/events"
  run -0 --separate-stderr stop --reason "wrong branch" --json
  assert_equal "$(result)" "stopped 0"
  valid <<<"$output"
  assert_equal "$(jq -r .holder.pid <<<"$output")" "$FRONT"
  assert_regex "$stderr" "demo: asking .*@.* \(run pid $FRONT: tree\) to stop; waiting for up to"
  wait_background ours
  # The command's own end: TERM.
  assert_equal "$status $output" "143 ready"
  run -0 redlock-cli status demo --runs
  assert_output --partial "signal 15, stopped by $(id -un)@$(hostname) (\"wrong branch\"))"
  run -0 redlock-cli status demo --runs --json
  assert_equal "$(jq -r '.locks[0].runs[0].stop_request.reason' <<<"$output")" "wrong branch"
  assert_regex "$stderr" "demo: asked to stop by $(id -un)@$(hostname) \(\"wrong branch\"\); stopping"
  assert_dead_before_free
  assert_tree_dead
  assert_equal \
    "$(reported '(j["result"], j["exit_code"], j["command_signal"], j["released"], j["left"])')" \
    "('stopped', 143, 15, True, [])"
  assert_equal "$(reported 'j["stop_request"]["reason"]')" "wrong branch"
  assert_equal "$(reported 'j["message"]')" \
    "stopped at the request of $(id -un)@$(hostname) (\"wrong branch\")"
  assert_equal \
    "$(jq -r 'select(.event == "stopping") | "\(.why) \(.by) \(.reason)"' \
      "$BATS_TEST_TMPDIR/events")" \
    "request $(id -un)@$(hostname) wrong branch"
  cat "$BATS_TEST_TMPDIR/events" "$BATS_TEST_TMPDIR/report" | valid
}

@test "run exits as its command ended, and --once-per counts no success" {
  start_background ours redlock-cli run -k demo -t 9s --once-per 20h -- \
    bash -c 'trap "exit 0" TERM; echo ready; while :; do sleep 0.1; done'
  wait_for_stdout ours ready
  run -0 stop
  wait_background ours
  assert_equal "$status" 0
  run -0 redlock-cli run -k demo --once-per 20h --server-timeout 4s -- echo again
  assert_output --partial again
}

@test "a lease that is lost while the command is being stopped is 79, whatever the command exits with" {
  start_background ours redlock-cli run -k demo -t 9s --grace 4s -- bash -c '
    trap "redlock-cli release -k demo --force >/dev/null; until test -e $BATS_TEST_TMPDIR/lost; do sleep 0.05; done
      exit 0" TERM
    echo ready
    while :; do sleep 0.05; done'
  wait_for_stdout ours ready
  run -75 redlock-cli stop demo -w 0 --server-timeout 4s
  wait_for_stderr ours lost
  touch "$BATS_TEST_TMPDIR/lost"
  wait_background ours
  assert_equal "$status" 79
}

@test "a waiter starts afterwards" {
  hold ours -t 9s
  start_background next redlock-cli run -k demo -- echo next
  wait_for_queued 1
  run -0 stop
  wait_background ours
  assert_equal "$status" 143
  wait_background next
  assert_equal "$status $output" "0 next"
}

@test "a lock that is free, or another holder's by then, needs no stop: 0; with --if-fence: 79" {
  run -0 --separate-stderr stop --json
  assert_equal "$(result)" "free 0"
  hold ours
  local fence
  fence=$(redlock-cli status demo --json | jq .locks[0].holder.fence)
  run -79 stop --if-fence $((fence + 1))
  assert_regex "$output" "left alone, it has another fence"
  run ! has_stop_request
  start_background stop redlock-cli stop demo -w 60s --if-fence "$fence"
  wait_until has_stop_request
  release_hold ours
  wait_background stop
  assert_equal "$status" 0
}

@test "a command that ends by itself before it learns of the request was not stopped" {
  hold ours -t 60s
  start_background asks redlock-cli stop demo -w 60s
  wait_until has_stop_request
  release_hold ours
  wait_background asks
  assert_equal "$status" 0
  assert_regex "$stderr" "demo: ended before the request reached it; released after "
}

@test "a wait that times out exits with 75, and the request stands" {
  hold ours -t 9s
  run -75 --separate-stderr redlock-cli stop demo -w 0 --json --reason later
  assert_equal "$(result)" "busy 75"
  assert_regex "$stderr" "not stopped after .*; the request stands"
  wait_background ours
  assert_equal "$status" 143
}

@test "a lease that expires because its guards were killed is not reported as released: 80" {
  start_tree ours -t 6s
  kill -KILL "$HOLDER" "$FRONT"
  run -80 stop
  assert_regex "$output" "demo: gone after .*, but not released: its command may still run; it was held"
}

@test "a lease that is broken while its command ends is not reported as released: 80" {
  start_background ours redlock-cli run -k demo -t 60s --grace 20s -- \
    bash -c 'trap "" TERM; echo ready; while :; do sleep 0.1; done'
  wait_for_stdout ours ready
  start_background stop redlock-cli stop demo -w 60s --json
  wait_until has_stop_request
  redlock-cli release -k demo --force
  wait_background stop
  assert_equal "$(result)" "unconfirmed 80"
  valid <<<"$output"
  assert_regex "$stderr" "not released: its command may still run; it was held by"
  assert_regex "$stderr" "run pid ${BACKGROUND_PID[ours]}: bash"
  kill -KILL "${BACKGROUND_PID[ours]}"
}

@test "status shows the requester" {
  hold ours
  run -75 redlock-cli stop demo -w 0 --reason "wrong branch"
  redlock-cli status demo --json | valid
  assert_regex "$(redlock-cli status demo)" \
    "asked to stop by $(id -un)@$(hostname) \(\"wrong branch\"\)"
  release_hold ours
}

@test "a holder that cannot be asked is 75 at once, with advice" {
  hold ours --on-lost warn
  run -75 stop
  assert_regex "$output" "cannot be asked to stop: held by .*; it runs with --on-lost warn: stop it"
  assert_regex "$output" '`redlock-cli release -k demo --force` breaks the lock under it'
  release_hold ours

  redlock-cli acquire -k demo -t 60s --token-file "$BATS_TEST_TMPDIR/lease"
  run -75 stop
  assert_regex "$output" "it was acquired by hand, so there is no command to stop"
  redlock-cli release --token-file "$BATS_TEST_TMPDIR/lease"

  redlock-cli acquire -k demo --detach --max-hold 60s --token-file "$BATS_TEST_TMPDIR/lease"
  run -75 stop
  assert_regex "$output" "it is detached, so there is no command to stop: .redlock-cli release. frees it, with its lease"
  redlock-cli release --token-file "$BATS_TEST_TMPDIR/lease"
}

@test "a run with --on-lost warn under the lease of another is no reason to wait, but obeys" {
  eval "$(redlock-cli acquire -k demo -t 60s --export)"
  start_background warns redlock-cli run -k demo -t 3s --on-lost warn -- \
    sh -c 'echo ready; exec sleep 1000'
  wait_for_stdout warns
  run -75 redlock-cli stop demo
  assert_output --partial "cannot be asked to stop"
  # Once another run can be asked, the request reaches both.
  start_background stops redlock-cli run -k demo -t 3s -- sh -c 'echo ready; exec sleep 1000'
  wait_for_stdout stops
  run -75 redlock-cli stop demo -w 60s
  assert_output --partial "what ran under it has stopped"
  wait_background warns
  assert_equal "$status" 143
  wait_background stops
  assert_equal "$status" 143
  redlock-cli release
}

# bats test_tags=redis
@test "a foreign client is 75 at once" {
  redis 0 set demo theirs px 60000
  run -75 stop
  assert_regex "$output" "held by a foreign client.*release -k demo --force --foreign"
  redis 0 persist demo
  run -75 stop
  assert_regex "$output" "held by a foreign client.*find out whose data it is, and lock another key"
}

@test "a slot is stopped by its number, and the others continue" {
  start_background first redlock-cli run -k demo -t 9s --slots 2 -- sh -c 'echo ready; exec sleep 99'
  wait_for_stdout first ready
  start_background second redlock-cli run -k demo -t 9s --slots 2 -- \
    sh -c 'echo ready; exec sleep 99'
  wait_for_stdout second ready
  run -64 stop
  assert_regex "$output" "choose a slot with --slot SLOT"
  run -0 stop --slot 5
  assert_regex "$output" "nothing to stop: slot 5 is free"
  run -0 stop --slot 1
  assert_regex "$output" "demo: stopped; released after"
  wait_background second
  assert_equal "$status" 143
  kill -0 "${BACKGROUND_PID[first]}"
  run -0 stop --slot 0
  wait_background first
  assert_equal "$status" 143
  hold ours
  run -64 stop --slot 0
  assert_regex "$output" "it has no slots: leave out --slot"
  release_hold ours
}

@test "a run that has one lock and waits for the other gives up" {
  hold theirs
  start_background ours redlock-cli run -k a -k demo -t 9s --json -- echo ran
  wait_for_queued 1
  run -0 redlock-cli stop a -w 60s --reason "not today"
  wait_background ours
  assert_equal "$status" 143
  assert_equal "$output" ""
  output=$(tail -n 1 <<<"$stderr")
  assert_equal "$(result)" "stopped 143"
  assert_regex "$(jq -r .message <<<"$output")" '"not today"\); the command was not run'
  wait_for_queued 0
  release_hold theirs
}

@test "of nested runs of one key the outer one is asked; of another key only the inner one" {
  start_background ours redlock-cli run -k demo -t 9s -- \
    redlock-cli run -k demo -- sh -c 'echo ready; exec sleep 99'
  wait_for_stdout ours ready
  run -0 stop
  wait_background ours
  assert_equal "$status" 143

  start_background both redlock-cli run -k outer -t 9s -- \
    sh -c 'redlock-cli run -k demo -t 9s -- sh -c "echo ready; exec sleep 99"; echo "inner $?"'
  wait_for_stdout both ready
  run -0 stop
  wait_background both
  assert_equal "$status" 0
  assert_regex "$output" "inner 143"
}

@test "a nested run that outlives the outer one is stopped as well" {
  start_background ours redlock-cli run -k demo -t 9s -- bash -c '
    redlock-cli run -k demo -- sh -c "echo ready; exec sleep 99" &
    until [[ -e $0 ]]; do sleep 0.1; done' "$BATS_TEST_TMPDIR/go"
  wait_for_stdout ours ready
  touch "$BATS_TEST_TMPDIR/go"
  wait_background ours
  assert_equal "$status" 0
  run -0 stop
  assert_regex "$(<"$(background_stderr ours)")" "asked to stop by .*; stopping the command"
  run -0 redlock-cli run -k demo -n -- true
}

@test "a lease that only --min-hold keeps counts as gone" {
  start_background ours redlock-cli run -k demo -t 9s --min-hold 5m -- sh -c 'echo ready; exec sleep 99'
  wait_for_stdout ours ready
  run -0 stop
  assert_regex "$output" "stopped; its command ended after .*; now it is kept until .* by --min-hold"
  wait_background ours
  assert_equal "$status" 143
  run -0 stop
  assert_regex "$output" "nothing to stop: kept until .* by --min-hold"
}

@test "a script under acquire --while-pid is stopped with all its descendants" {
  start_watched ours "$(executable watched <<'EOF'
#!/bin/bash
redlock-cli acquire -k demo --while-pid $$ -t 9s --grace 1s --token-file "$1" || exit
trap 'exit 7' TERM
echo ready
while :; do sleep 0.1; done
EOF
)" "$BATS_TEST_TMPDIR/lease"
  run -0 stop --reason "wrong branch"
  wait_background ours
  assert_equal "$status" 7
  assert_regex "$stderr" \
    "demo: asked to stop by .* \(\"wrong branch\"\); stopping process $SCRIPT and its"
}

@test "stop is for one key" {
  assert_refused 64 "stop needs KEY: the lock whose command to stop" redlock-cli stop
  run -64 redlock-cli stop a b
  assert_regex "$output" "stop is for one key at a time"
}
