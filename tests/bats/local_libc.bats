#!/usr/bin/env bats
# Preloaded libraries that change what libc answers, such as faketime and fakeroot, change no lock.
load helper/common

setup() {
  common_setup
  needs_shared_libc
  start_local_store
  export REDLOCK_SERVER=$SERVERS
  FALSE_LIBC=$(preload false_libc)
}

# with_false VARIABLE=VALUE COMMAND…: it and what it starts get false answers of libc.
with_false() { env "LD_PRELOAD=$FALSE_LIBC" "$@"; }

readonly YEAR=31536000

@test "the guards keep and end a lease by the kernel's clock, whatever libc's says" {
  local off
  for off in "-$YEAR" "$YEAR"; do
    # The command outlasts several renewals, and a timer ends it.
    run -124 with_false "FALSE_CLOCK=$off" "$REDLOCK_CLI" run -k demo -t 2s --max-hold 4s -q -- \
      sh -c 'sleep 30; echo outlived'
    refute_output --partial outlived
  done
}

@test "the wall clock of fences and records is the kernel's, too" {
  run -0 with_false "FALSE_CLOCK=$YEAR" "$REDLOCK_CLI" run -k demo -- true
  assert_in_range "$(($(fence_at 0 demo) / 1000 - $(date +%s)))" -86400 86400
}

@test "who seems to be root by libc alone locks as the user that it is" {
  ((EUID == 0)) || skip "only root can be two users"
  unshare --mount true 2>/dev/null || skip "needs root with CAP_SYS_ADMIN"
  # shellcheck disable=SC2016
  run -0 unshare --mount --propagation private bash -euo pipefail -c '
    mount -t tmpfs -o mode=1777 none /run/lock
    mount -t tmpfs -o mode=755 none /mnt
    cp "$0" /mnt/redlock-cli
    cp "$1" /mnt/false_libc.so
    as_user() { setpriv --reuid 65534 --regid 65534 --clear-groups env -i -C / "$@"; }
    false_root=(LD_PRELOAD=/mnt/false_libc.so FALSE_ROOT=1 /mnt/redlock-cli)
    as_user /mnt/redlock-cli run -S local: -k demo -- env -u REDLOCK_HELD "${false_root[@]}" \
      run -S local: -k demo -n -- true && exit 1
    (($? == 64))
    as_user "${false_root[@]}" run -S local: -k demo -- true
    [[ $(stat -c "%n %u" /run/lock/*) == "/run/lock/redlock-cli-65534 65534" ]]
    /mnt/redlock-cli run -S local: -k demo -- true' "$REDLOCK_CLI" "$FALSE_LIBC"
}
