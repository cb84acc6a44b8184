#!/usr/bin/env bats
# A lock within the same lock: a Makefile that calls itself must not wait for itself.
load helper/common
load helper/supervision

token() { redis 0 get demo; }
users() { redis 0 hget 'redlock:owner:{demo}' users; }

# bats test_tags=redis
@test "run in run of the same key runs at once, under the outer lease" {
  run redlock-cli run -k demo -- sh -c 'echo "$REDLOCK_TOKEN"
    redlock-cli run -n -k demo -- sh -c "echo \$REDLOCK_TOKEN; exit 3"; echo $?
    redis-cli -s "$0" get demo' "${SERVER_SOCKET[0]}"
  assert_success
  assert_equal "${lines[0]}" "${lines[1]}"
  assert_line --index 2 3
  # The lock is still that of the outer run.
  assert_equal "${lines[3]}" "${lines[0]}"
  assert_equal "$(redis 0 exists demo)" 0
}

@test "to any depth, and through another lock" {
  run redlock-cli run -k demo -- redlock-cli run -k other -- redlock-cli run -n -k demo \
    -- redlock-cli run -n -k other -k demo -- echo here
  assert_success
  assert_output here
  assert_equal "$(redis 0 exists demo other)" 0
}

# bats test_tags=redis
@test "of several keys those of the enclosing run are inherited, the others acquired and released" {
  run redlock-cli run -k demo -- redlock-cli run -n -k demo -k other \
    -- sh -c 'redis-cli -s "$0" exists demo other' "${SERVER_SOCKET[0]}"
  assert_output 2
  assert_equal "$(redis 0 exists demo other)" 0
}

@test "the inner run reports that it did not release" {
  run redlock-cli run -k demo -- sh -c 'redlock-cli run --json -n -k demo -- true 2>&1'
  assert_equal "$(jq -r '"\(.result) \(.released) \(.exit_code)"' <<<"$output")" "inherited false 0"
}

@test "processes that the inner command leaves continue under the outer lease: -q is silent" {
  run -0 --separate-stderr redlock-cli run -k demo -q --descendants kill -- \
    redlock-cli run -k demo -q -- sh -c 'sleep 1000 >/dev/null 2>&1 3>&- &'
  assert_equal "$stderr" ""
}

@test "REDLOCK_HELD survives odd keys" {
  local key=$'it\'s a {key}; $(true)\n: \\ \xff'
  run --separate-stderr redlock-cli run -k "$key" -- redlock-cli run -k "b c" \
    -- redlock-cli run -n -k "$key" -k "b c" -- echo here
  assert_success
  assert_output here
}

@test "a process that only inherited the variable acquires for itself" {
  # Like a tmux that was started under the lock and outlives it.
  start_background outer redlock-cli run -k demo \
    -- sh -c 'env -0 >"$0/env"; echo ready; exec sleep 1000' "$BATS_TEST_TMPDIR"
  wait_for_stdout outer ready
  local -a inherited
  mapfile -d '' -t inherited < <(grep -z '^REDLOCK_' "$BATS_TEST_TMPDIR/env")
  assert [ "${#inherited[@]}" -ge 5 ]
  run env "${inherited[@]}" redlock-cli run -n -k demo -- true
  assert_failure 75
  kill "${BACKGROUND_PID[outer]}"
  wait_background outer
  run env "${inherited[@]}" redlock-cli run -n -k demo -- sh -c 'echo "$REDLOCK_TOKEN"'
  assert_success
  refute_output "$(printf '%s\n' "${inherited[@]}" | sed -n 's/^REDLOCK_TOKEN=//p')"
}

@test "forged and stale values grant nothing" {
  redis 0 set demo theirs
  local value
  for value in x ' ' \
    "1:$(</proc/sys/kernel/random/boot_id):$$:1:30000:\
1.x.0123456789abcdef.ZGVtbw.0123456789abcdef0123456789abcdef.1" \
    "$(printf 'x%.0s' {1..5000})"; do
    run env REDLOCK_HELD="$value" redlock-cli run -n -k demo -- true
    assert_failure 75
  done
}

@test "when the outer lease is lost, the inner command is stopped, too, and nothing is granted under it" {
  start_background outer redlock-cli run -t 9s -k demo -- redlock-cli run -k demo \
    -- sh -c 'echo $$ ready; exec sleep 1000'
  wait_for_stdout outer ready
  local inner
  inner=$(sed 's/ .*//' "$(background_stdout outer)")
  redis 0 set demo theirs
  wait_background outer
  assert_equal "$status" 79
  assert is_dead "$inner"
  assert_equal "$(redis 0 get demo)" theirs
}

@test "an inner run that starts after the outer lease is gone does not use it" {
  start_background outer redlock-cli run -t 30s --on-lost warn -k demo -- sh -c '
    until [ -e "$0/gone" ]; do sleep 0.1; done
    redlock-cli run -n -k demo -- touch "$0/ran"; echo "inner $?"' "$BATS_TEST_TMPDIR"
  wait_for_key 0 demo
  redis 0 set demo theirs
  touch "$BATS_TEST_TMPDIR/gone"
  wait_background outer
  assert_equal "$output" "inner 75"
  assert [ ! -e "$BATS_TEST_TMPDIR/ran" ]
}

# --- When the outer run ends first ---

# start_outer [OPTION…]: an outer run, with an inner run that works until release_inner. The outer
# command ends with end_outer. Another run waits for the lock, and shows whether the inner command
# had ended when it started.
start_outer() {
  # shellcheck disable=SC2016
  start_background outer redlock-cli run -k demo -t 5m -q "$@" -- bash -c 'dir=$0
    redlock-cli run -k demo -n -q "$@" -- bash -c "echo ready
      until [[ -e \$0/end ]]; do sleep 0.1; done; echo ended" "$dir" &
    until [[ -e $dir/go ]]; do sleep 0.1; done; exit 3' "$BATS_TEST_TMPDIR" "$@"
  wait_for_stdout outer ready
  start_background next redlock-cli run -k demo -- cat "$(background_stdout outer)"
  wait_for_queued 1
}
end_outer() {
  touch "$BATS_TEST_TMPDIR/go"
  wait_background outer
  assert_equal "$status" 3
  run -75 redlock-cli run -k demo -n -- true
}
release_inner() {
  touch "$BATS_TEST_TMPDIR/end"
  wait_background next
  assert_equal "$status $output" $'0 ready\nended'
}

@test "an inner run that outlives the outer one keeps the lock until it ends" {
  start_outer
  end_outer
  release_inner
  assert_unlocked demo 0
}

@test "so it does with a share, slots and several keys" {
  local mode
  for mode in -s '--slots 2' '--slots 3 --take 2' '-k other'; do
    # shellcheck disable=SC2086
    start_outer $mode
    end_outer
    release_inner
    rm "$BATS_TEST_TMPDIR"/{go,end}
  done
  assert_unlocked other 0
}

@test "of several keys those that no inner run uses are free when the outer run ends" {
  start_background outer redlock-cli run -k demo -k other -- bash -c '
    redlock-cli run -k demo -- bash -c "echo ready; until [[ -e \$0 ]]; do sleep 0.1; done" "$0" &
    until [[ -e $0.go ]]; do sleep 0.1; done' "$BATS_TEST_TMPDIR/end"
  wait_for_stdout outer ready
  touch "$BATS_TEST_TMPDIR/end.go"
  wait_background outer
  assert_equal "$status" 0
  assert_regex "$stderr" "they run on without the lock, except in nested runs"
  run -0 redlock-cli run -k other -n -- true
  run -75 redlock-cli run -k demo -n -- true
  touch "$BATS_TEST_TMPDIR/end"
  run -0 redlock-cli run -k demo -- true
}

@test "an inner run that waits for another key keeps the lock, too" {
  start_background other redlock-cli run -k other -- \
    bash -c 'echo held; until [[ -e $0 ]]; do sleep 0.1; done' "$BATS_TEST_TMPDIR/end"
  wait_for_stdout other held
  start_background outer redlock-cli run -k demo -- bash -c '
    redlock-cli run -k demo -k other -- echo inner &
    until [[ -e $0 ]]; do sleep 0.1; done' "$BATS_TEST_TMPDIR/go"
  wait_for_stderr outer "waiting for other"
  touch "$BATS_TEST_TMPDIR/go"
  wait_background outer
  assert_equal "$status" 0
  run -75 redlock-cli run -k demo -n -- true
  touch "$BATS_TEST_TMPDIR/end"
  run -0 --separate-stderr redlock-cli run -k demo -- cat "$(background_stdout outer)"
  assert_output inner
}

@test "runs below it work under the lease, too, and so does acquire" {
  start_background outer redlock-cli run -k demo -- bash -c '
    redlock-cli run -k demo -- bash -c "
      redlock-cli run -k demo -- bash \$0/innermost \$0 & until [[ -e \$0/go ]]; do sleep 0.1; done
      " "$0" &
    until [[ -e $0/go ]]; do sleep 0.1; done' "$BATS_TEST_TMPDIR"
  cat >"$BATS_TEST_TMPDIR/innermost" <<'EOF'
until [[ -e $1/more ]]; do sleep 0.1; done
redlock-cli acquire -k demo -n -t 9s >/dev/null && echo borrowed
redlock-cli run -k demo -n -- echo deeper
EOF
  wait_until used_by 2
  touch "$BATS_TEST_TMPDIR/go"
  wait_background outer
  assert_equal "$status" 0
  wait_until used_by 1
  touch "$BATS_TEST_TMPDIR/more"
  run -0 --separate-stderr redlock-cli run -k demo -- cat "$(background_stdout outer)"
  assert_output $'borrowed\ndeeper'
}
# used_by COUNT: `status` shows so many runs that use the lease.
used_by() { [[ $(redlock-cli status demo --json | jq '.locks[0].holder.users | length') == "$1" ]]; }

@test "the success of the outer run is recorded when it ends" {
  start_background outer redlock-cli run -k demo -q --once-per 1h -- bash -c '
    redlock-cli run -k demo -- bash -c "echo ready; until [[ -e \$0 ]]; do sleep 0.1; done" "$0" &
    until [[ -e $0.go ]]; do sleep 0.1; done' "$BATS_TEST_TMPDIR/end"
  wait_for_stdout outer ready
  touch "$BATS_TEST_TMPDIR/end.go"
  wait_background outer
  assert_equal "$status" 0
  touch "$BATS_TEST_TMPDIR/end"
  run -0 --separate-stderr redlock-cli run -k demo --once-per 1h -- echo again
  assert_equal "$output" ""
}

@test "an outer run whose front process is killed takes inner runs with it, and the lock is free at once" {
  start_outer
  kill -KILL "${BACKGROUND_PID[outer]}"
  wait_background next
  assert_equal "$status $output" "0 ready"
  wait_background outer
  assert_unlocked demo 0
}

@test "an inner run that was killed without a word keeps nothing once the outer command has ended" {
  run -0 redlock-cli run -k demo -t 5m -- bash -c '
    redlock-cli run -k demo -- bash -c "echo \$\$ >\$0; exec sleep 1000" "$0" &
    until [[ -s $0 ]]; do sleep 0.1; done
    kill -KILL "$!" $(pgrep -P "$!"); wait
    while kill -0 "$(<"$0")" 2>/dev/null; do sleep 0.1; done' "$BATS_TEST_TMPDIR/pid"
  run -0 redlock-cli run -k demo -n -- true
}

# bats test_tags=redis
@test "an inner run in another network namespace uses the lease, too" {
  unshare --net true 2>/dev/null || skip "needs root with CAP_SYS_ADMIN"
  run -0 redlock-cli run -k demo -- unshare --net redlock-cli run -k demo -n -- echo here
  assert_output here
}

@test "where the boot id is hidden, an inner run says why it cannot use the lease" {
  unshare --mount true 2>/dev/null || skip "needs root with CAP_SYS_ADMIN"
  run --separate-stderr redlock-cli run -k demo -- unshare --mount --propagation private sh -c '
    mount -t proc -o subset=pid proc /proc && exec redlock-cli run -k demo -n -- echo inner'
  refute_output --partial inner
  assert_not_equal "$status" 0
  assert_regex "$stderr" "boot_id cannot be read \\(ProcSubset=pid hides it\\)"
}

# --- The ttl ---

@test "an inner run with a longer ttl outlives the ttl of the outer one" {
  run redlock-cli run -t 12s -k demo -- redlock-cli run -n -t 60s --grace 500ms -k demo \
    -- sh -c 'sleep 16; echo survived'
  assert_success
  assert_output survived
}

# bats test_tags=redis
@test "of nested runs only the outermost one obeys a stop, also if one between has ended" {
  local dir=$BATS_TEST_TMPDIR work between before
  work=$(executable work <<'EOF'
#!/bin/bash
trap 'touch "$1/asked"' TERM
echo ready
until [[ -e $1/end ]]; do sleep 0.1; done
EOF
  )
  between=$(executable between <<'EOF'
#!/bin/bash
redlock-cli run -k demo -t 24s --grace 12s --server-timeout 1s -- "$2" "$1" &
until [[ -e $1/go ]]; do sleep 0.1; done
EOF
  )
  # shellcheck disable=SC2016
  start_background ours redlock-cli run -k demo -t 24s --grace 12s --server-timeout 1s -- bash -c '
    trap : TERM
    redlock-cli run -k demo -- "$1" "$0" "$2"
    touch "$0/ended"
    until [[ -e $0/end ]]; do sleep 0.1; done' "$dir" "$between" "$work"
  wait_for_stdout ours ready
  touch "$dir/go"
  wait_until test -e "$dir/ended"
  start_background stop redlock-cli stop demo
  wait_until test -e "$dir/asked"
  # The innermost run reads the request with its next renewal, if not before.
  before=$(users)
  wait_until eval '[[ $(users) != "$before" ]]'
  touch "$dir/end"
  wait_background ours
  assert_equal "$(grep -c 'asked to stop by' "$(background_stderr ours)")" 1
}

@test "an inner run uses the ttl of the outer one, however short" {
  run redlock-cli run -t 9s -k demo -- redlock-cli run -n -k demo \
    -- sh -c 'sleep 12; echo survived'
  assert_success
  assert_output survived
}

@test "an inner run may need a longer ttl than the outer one has" {
  run -0 redlock-cli run -t 9s -k demo -- redlock-cli run -t 60s --grace 10s -k demo -- echo here
  assert_output here
}

# bats test_tags=redis
@test "acquire within run: its lease is inherited, and releasing it changes nothing" {
  run redlock-cli run -k demo -- sh -c 'set -e
    lease=$(redlock-cli acquire -n -k demo -t 9s --export); eval "$lease"
    [ "$REDLOCK_TOKEN" = "$(redis-cli -s "$0" get demo)" ]
    redlock-cli extend -t 60s; redlock-cli release; redlock-cli release
    redis-cli -s "$0" exists demo
    redis-cli -s "$0" del demo >/dev/null; redlock-cli extend -t 60s || echo "extend $?"' \
    "${SERVER_SOCKET[0]}"
  assert_line 1
  assert_line "extend 79"
}

# bats test_tags=redis
@test "run under a lease from acquire renews it and does not release it" {
  eval "$(redlock-cli acquire -k demo -t 8s --export)"
  run redlock-cli run -n -t 8s --server-timeout 1s -k demo \
    -- sh -c 'sleep 9; redis-cli -s "$0" get demo' "${SERVER_SOCKET[0]}"
  assert_success
  assert_output "$REDLOCK_TOKEN"
  assert_equal "$(token)" "$REDLOCK_TOKEN"
  run redlock-cli run -n -k demo -- redlock-cli run -n -k demo -- echo deeper
  assert_output deeper
  redlock-cli release
  assert_equal "$(redis 0 exists demo)" 0
}

# bats test_tags=redis
@test "on three servers, one of them dead" {
  start_servers 2
  export REDLOCK_SERVER=$SERVERS
  kill_server 1
  run redlock-cli run -k demo -- redlock-cli run -n -k demo -- echo here
  assert_success
  assert_output here
}

# bats test_tags=redis
@test "an inner run that starts without a quorum waits for one, and then runs" {
  start_servers 2
  export REDLOCK_SERVER=$SERVERS
  start_background outer redlock-cli run -t 60s -k demo -- sh -c '
    echo ready; until [ -e "$0/go" ]; do sleep 0.1; done
    redlock-cli run -k demo --events-fd 8 -- touch "$0/ran" 8>"$0/events"; echo "inner $?"' \
    "$BATS_TEST_TMPDIR"
  wait_for_stdout outer ready
  pause_server 1
  pause_server 2
  touch "$BATS_TEST_TMPDIR/go"
  wait_until grep -qs '"waiting"' "$BATS_TEST_TMPDIR/events"
  resume_server 1
  resume_server 2
  wait_background outer
  assert_equal "$output" "$(printf 'ready\ninner 0')"
  assert [ -e "$BATS_TEST_TMPDIR/ran" ]
}

# bats test_tags=redis
@test "a different set of servers is a different lock" {
  start_servers 1
  run redlock-cli run -k demo -- redlock-cli run -n -S "${SERVER_URL[1]}" -k demo \
    -- sh -c 'redis-cli -s "$0" exists demo' "${SERVER_SOCKET[1]}"
  assert_output 1
}

# --- Where REDLOCK_HELD was taken away ---

# As sudo, su and env -i do.
STRIPPED=(env -u REDLOCK_HELD -u REDLOCK_LEASE -u REDLOCK_TOKEN)

@test "a run that would wait for its enclosing run is refused at once with advice" {
  local how
  for how in 'exec' '' 'exec setsid -w'; do
    run -0 --separate-stderr redlock-cli run -k demo -- sh -c "$how \"\$@\"; exit" sh \
      sh -c '"$@" -- touch "$0"; [ "$?" = 64 ]' "$BATS_TEST_TMPDIR/ran" \
      "${STRIPPED[@]}" redlock-cli run -k demo
    assert_regex "$stderr" "demo: held by .* \(run pid [0-9]+: sh\), which waits for this \
command: .*--preserve-env=REDLOCK_HELD"
  done
  run -0 --separate-stderr redlock-cli run -k demo -- sh -c '"$@"; [ "$?" = 64 ]' sh \
    "${STRIPPED[@]}" redlock-cli acquire -k demo -t 60s
  assert_regex "$stderr" "which waits for this command"
  assert [ ! -e "$BATS_TEST_TMPDIR/ran" ]
  assert_equal "$(keys_at 0)" ""
}

@test "with -w it reports that in one line, and waits" {
  run -0 --separate-stderr redlock-cli run -k demo -- sh -c '"$@"; [ "$?" = 75 ]' sh \
    "${STRIPPED[@]}" redlock-cli run -k demo -w 1500ms -- true
  assert_equal "$(grep -c "which waits for this command" <<<"$stderr")" 1
}

@test "a run that does not wait is refused alike, and does not call its own lock busy" {
  local how
  for how in 'run -n' 'run -n -E 0 -q' 'run -w 0' 'run -n --once-per 1h' 'acquire -n -t 60s'; do
    local -a inner=("${STRIPPED[@]}" redlock-cli $how -k demo)
    [[ $how == acquire* ]] || inner+=(-- touch "$BATS_TEST_TMPDIR/ran")
    run -64 --separate-stderr redlock-cli run -k demo -- "${inner[@]}"
    assert_regex "$stderr" "which waits for this command: .*--preserve-env=REDLOCK_HELD"
    refute_regex "$stderr" "with -w it waits"
  done
  assert [ ! -e "$BATS_TEST_TMPDIR/ran" ]
  assert_equal "$(keys_at 0)" ""
}

@test "so is a run that finds the queue full" {
  cd "$BATS_TEST_TMPDIR"
  mkfifo go
  start_background outer redlock-cli run -k demo -- sh -c 'echo held; read -r _ <go; exec "$@"' sh \
    "${STRIPPED[@]}" redlock-cli run -k demo --max-waiting 1 -- true
  wait_for_stdout outer held
  start_background waiter redlock-cli run -k demo -- true
  wait_for_queued 1
  echo >go
  wait_background outer
  assert_equal "$status" 64
  assert_regex "$(<"$(background_stderr outer)")" "which waits for this command"
  wait_background waiter
  assert_equal "$status" 0
}

@test "the process that acquire --while-pid watches counts as the holder" {
  run -0 --separate-stderr bash -c 'redlock-cli acquire -k demo --while-pid $$ >/dev/null
    env -u REDLOCK_HELD -u REDLOCK_LEASE redlock-cli run -k demo -- true
    [ "$?" = 64 ]'
  assert_regex "$stderr" "which waits for this command: .*REDLOCK_LEASE"
}

@test "a run that outlives the command of its enclosing run gets the lock when that has ended" {
  cd "$BATS_TEST_TMPDIR"
  printf '%s\n' 'exec env -u REDLOCK_HELD -u REDLOCK_LEASE redlock-cli run -k demo --events-fd 8 \
    -- touch entered 8>events 2>inner.err' >inner
  run -0 redlock-cli run -k demo -- sh -c '(setsid sh inner &)
    until grep -qs \"waiting\" events; do sleep 0.1; done'
  wait_until test -e entered
  assert_equal "$(grep "waits for this command" inner.err)" ""
}

@test "so does a run that outlives a command ended by a signal, while its group is waited for" {
  cd "$BATS_TEST_TMPDIR"
  printf '%s\n' 'until [ -e go ]; do sleep 0.1; done
    exec env -u REDLOCK_HELD -u REDLOCK_LEASE redlock-cli run -k demo --events-fd 8 \
      -- touch entered 8>events 2>inner.err' >inner
  start_background outer redlock-cli run -k demo -- sh -c '
    (setsid sh inner >/dev/null 2>&1 &)
    (trap "" TERM; until [ -e end ]; do sleep 0.1; done) &
    kill -TERM $$; sleep 1000'
  wait_for_stderr outer "a signal ended the command; keeping the lock"
  touch go
  wait_until grep -qs waiting events
  touch end
  wait_background outer
  assert_equal "$status" 143
  wait_until test -e entered
  assert_equal "$(grep "waits for this command" inner.err)" ""
}
