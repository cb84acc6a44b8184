#!/usr/bin/env bats
# Signals at random moments: connecting, waiting, starting, running, ending.
load helper/common
load helper/supervision

@test "a signal at any moment: no orphan, no lock left, no lock gone while the command lives" {
  run /usr/bin/python3 "$BATS_TEST_DIRNAME/helper/random_signals.py" 150 "$WITNESS" \
    "$SERVER_SOCKET" "$(command -v redlock-cli)"
  # The seed, to try the same again.
  echo "$output"
  assert_success
}
