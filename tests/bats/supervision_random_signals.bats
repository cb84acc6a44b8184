#!/usr/bin/env bats
# The commands' own shells expand; each test is a subshell; bats and helpers set variables:
# shellcheck disable=SC2016,SC2030,SC2031,SC2154
# Signals at random moments: connecting, waiting, starting, running, ending.
load helper/common
load helper/checks
load helper/redis
load helper/locks
load helper/supervision

setup() { setup_supervision; }
teardown() { teardown_supervision; }

@test "a signal at any moment: no orphan, no lock left, no lock gone while the command lives" {
  run /usr/bin/python3 "$BATS_TEST_DIRNAME/helper/random_signals.py" 150 "$WITNESS" \
    "$SERVER_SOCKET" "$(command -v redlock-cli)"
  # The seed, to try the same again.
  echo "$output"
  assert_success
}
