#!/usr/bin/env bats
# A lock that is lost on the server while the command runs: the command is stopped, and the status
# is 79.
load helper/common
load helper/supervision
load helper/family

@test "a lock that another client deletes: the command and all its descendants are dead when run exits with 79" {
  start_family ours -t 12s --grace 4s
  local expires
  expires=$(redis 0 <<<$'multi\npexpiretime demo\ndel demo\nexec' | sed -n 4p)
  wait_background ours
  # Before the lease would have expired.
  assert_in_range "$(date +%s%3N)" 0 "$expires"
  assert_equal "$status" 79
  assert_family_dead
  assert_regex "$stderr" "redlock-cli: demo: lost: it is gone"
  run report
  assert_output --partial '"result":"lost","exit_code":79'
  assert_output --partial '"command_signal":15'
  assert_output --partial '"released":false'
  assert_output --partial '"left":[]'
  assert_equal "$(redis 0 exists demo)" 0
}

@test "a lock that another client overwrites: the same, and the other's lock is not touched" {
  start_family ours -t 9s
  redis 0 set demo theirs px 600000
  wait_background ours
  assert_equal "$status" 79
  assert_family_dead
  assert_regex "$stderr" "demo: lost: it is held by a foreign client"
  assert_equal "$(redis 0 get demo)" theirs
  assert [ "$(redis 0 pttl demo)" -gt 60000 ]
  run report
  assert_output --partial '"result":"lost","exit_code":79'
}

@test "an expiry that another client removes is restored by the next renewal" {
  hold ours -t 9s
  redis 0 persist demo
  wait_until has_expiry
  release_hold ours
  assert_equal "$status" 0
  assert_equal "$(keys_at 0)" ""
}

has_expiry() { (($(redis 0 pttl demo) > 0)); }

@test "a lock that is broken by release --force: the command is stopped, and the message says who broke it, why, and who holds it now" {
  start_family ours -t 20s
  local holder
  holder=$(holder_of "${BACKGROUND_PID[ours]}")
  # So that no renewal comes between the two.
  kill -STOP "$holder"
  redlock-cli release -k demo --force --reason 'stuck since noon'
  redlock-cli acquire -k demo --ttl 60s --note 'the next one' >"$BATS_TEST_TMPDIR/token"
  kill -CONT "$holder"
  wait_background ours
  assert_equal "$status" 79
  assert_family_dead
  assert_regex "$stderr" \
    "lost: $(id -un)@$(uname -n) broke it with \`release --force\` \\(\"stuck since noon\"\\); \
now it is held by .*\"the next one\""
  assert_equal "$(redis 0 get demo)" "$(<"$BATS_TEST_TMPDIR/token")"
}

@test "a lock that is broken while the command ends is also reported as broken" {
  run -79 --separate-stderr redlock-cli run -k demo -- sh -c 'redlock-cli release -k demo --force'
  assert_regex "$stderr" \
    "lost while the command ran: $(id -un)@$(uname -n) broke it with \`release --force\`$"
}

@test "--reason needs --force" {
  assert_refused 64 "--reason: goes with --force" redlock-cli release -k demo --reason why
}

@test "a loss that is noticed only at the release is 79, whatever the command's status" {
  local code
  for code in 0 3; do
    run redlock-cli run -k demo --status-fd 9 \
      -- sh -c 'redis-cli -s "$0" del demo; exit "$1"' "$SERVER_SOCKET" "$code" \
      9>"$BATS_TEST_TMPDIR/report"
    assert_failure 79
    assert_output --partial "lost while the command ran"
    run report
    assert_output --partial '"result":"lost","exit_code":79'
    assert_output --partial "\"command_exit\":$code"
    assert_output --partial '"released":false'
  done
}
