# shellcheck shell=bash
# Commands that load the machine, for tests that check whether they die in time.

# strike WORD…: cuts the holder process off while the load runs under a lease of 3 s; see there.
strike() {
  run --separate-stderr timeout 120 /usr/bin/python3 "$BATS_TEST_DIRNAME/../load/strike.py" \
    --program "$REDLOCK_CLI" --tree "$LOAD_TREE" --ttl 3s "$@"
}

assert_in_time() {
  [[ $status == 0 && $output == *'"struck": true'*'"in_time": true'*'"status": 79'* ]] ||
    fail "$status: $output $stderr"
}
