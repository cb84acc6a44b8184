#!/usr/bin/env bats
# shellcheck disable=SC2154  # bats and helpers set variables
# A command that loads its machine is dead before its lease can expire, or the exit status says that it was not.
load helper/common

setup() {
  common_setup
  STRIKE=$BATS_TEST_DIRNAME/../load/strike.py
}

# strike WORD…: cuts the holder process off while the load runs under a lease of 5 s; see there.
strike() { run --separate-stderr timeout 120 /usr/bin/python3 "$STRIKE" --program "$REDLOCK_CLI" --tree "$LOAD_TREE" "$@"; }

assert_in_time() {
  [[ $status == 0 && $output == *'"in_time": true'* ]] || fail "$status: $output $stderr"
}

as_root() { ((EUID == 0)) || skip "needs root"; }

# A cgroup with the cpu controller is needed for a quota.
with_quota() {
  local directory
  as_root
  for directory in /sys/fs/cgroup/cpu /sys/fs/cgroup; do
    [[ ! -e $directory/cpu.cfs_quota_us && ! -e $directory/cpu.max ]] || return 0
  done
  grep -qsw cpu /sys/fs/cgroup/cgroup.subtree_control || skip "no cgroup has the cpu controller here"
}

@test "many busy processes are dead in time" {
  strike busy 100
  assert_in_time
}

@test "many busy processes in sessions of their own are dead in time" {
  strike busy 100 --sessions
  assert_in_time
}

@test "at a terminal, many busy processes are dead in time" {
  strike --terminal busy 100
  assert_in_time
}

@test "many idle processes are dead in time" {
  strike idle 1500
  assert_in_time
}

@test "a process with much memory is dead in time" {
  strike fat 1000
  assert_in_time
}

@test "processes that fork all the time are dead in time" {
  strike forks 10
  assert_in_time
}

@test "busy processes that share half a CPU with us are dead in time" {
  with_quota
  strike --quota 0.5 busy 30
  assert_in_time
}

@test "the same without any privilege" {
  with_quota
  strike --quota 0.5 --user 65534 busy 30
  assert_in_time
}

@test "with hardly any CPU at all, the exit status tells whether the command was dead in time" {
  with_quota
  strike --quota 0.05 --user 65534 busy 60 --sessions
  assert_equal "$status $stderr" "0 "
}
