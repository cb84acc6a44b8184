# shellcheck shell=bash
# For tests of a hold on three servers. The file defines has_hold NR and is_restorable.

setup_hold_quorum() {
  common_setup
  start_servers 3
  # The servers are as young as the test.
  export REDLOCK_SERVER=$SERVERS REDLOCK_RESTART_GUARD=0
  allow_late_answers
}

has_hold_everywhere() { has_hold 0 && has_hold 1 && has_hold 2; }
has_none_anywhere() { ! has_hold 0 && ! has_hold 1 && ! has_hold 2; }

# is_old FILTER [OPTION…]: a younger hold is not restored, as it may be an attempt under way. FILTER
# finds it for jq in the lock that `status` shows.
is_old() { redlock-cli status demo --json "${@:2}" | jq -e ".locks[0] | $1 | .age_ms >= 2000"; }

await_hold() {
  wait_until has_hold_everywhere
  wait_until is_restorable
}
