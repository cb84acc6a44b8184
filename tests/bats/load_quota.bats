#!/usr/bin/env bats
# A command with a CPU quota that exhausts it is dead before its lease can expire, or the exit
# status reports that it was not. Other tests can run in parallel.
load helper/common
load helper/load

setup() { common_setup; }

# A cgroup with the cpu controller is needed for a quota.
with_quota() {
  local directory
  ((EUID == 0)) || skip "needs root"
  for directory in /sys/fs/cgroup/cpu /sys/fs/cgroup; do
    [[ ! -e $directory/cpu.cfs_quota_us && ! -e $directory/cpu.max ]] || return 0
  done
  grep -qsw cpu /sys/fs/cgroup/cgroup.subtree_control ||
    skip "no cgroup has the cpu controller here"
}

@test "no busy process is left alive, however late it gets" {
  with_quota
  # Only the walk reaches them, with too small a share of the CPU. The strike waits until the last
  # is dead. Here, and where there is hardly any CPU, the lease may be lost earlier: that is checked
  # as well.
  strike --user 65534 --terminal --quota 0.2 busy 100
  assert_success
  assert_output --regexp '"status": (79|80)'
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

# About strike.py itself: no quota is needed.
@test "a lease that is lost before the strike is also checked, and was not struck" {
  LOAD_TREE=$(
    executable stops-its-holder <<'END'
#!/bin/sh
echo "$1"
kill -STOP "$PPID"
exec sleep 100
END
  )
  strike never-up
  assert_success
  assert_output --regexp '"struck": false, "in_time": true, .*"status": 79'
  strike --settle 30 ready
  assert_success
  assert_output --regexp '"struck": false, "in_time": true, .*"status": 79'
}

@test "a lease that is being lost when the load is up was not struck" {
  LOAD_TREE=$(
    executable up-too-late <<'END'
#!/bin/sh
trap 'echo ready' TERM
kill -STOP "$PPID"
while :; do sleep 0.1; done
END
  )
  strike none
  assert_success
  assert_output --regexp '"struck": false, "in_time": true, .*"status": 79'
}
