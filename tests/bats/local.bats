#!/usr/bin/env bats
# bats file_tags=smoke
# Locks on this host alone, without a server.
load helper/common

setup() {
  common_setup
  STORE=$BATS_TEST_TMPDIR/locks
  mkdir -m 700 "$STORE"
  export REDLOCK_SERVER=local:$STORE
}

# A private lock directory of the user, which is removed after the test.
OWN_KEY=
teardown() {
  common_teardown
  [[ -z $OWN_KEY ]] || rm -f "/run/lock/redlock-cli-$EUID/$(file_of "$OWN_KEY")"
}
use_own_place() {
  [[ -k /run/lock && -w /run/lock ]] || skip "this user may not write to /run/lock"
  OWN_KEY=bats-$BATS_TEST_NUMBER-$SRANDOM
}

file_of() { printf '%s' "$1" | sha256sum | cut -d ' ' -f 1; }

# hold NAME [OPTION…]: `run` holds the key demo in the background, until release_hold NAME.
hold() {
  local name=$1
  shift
  start_background "$name" redlock-cli run -k demo "$@" -- \
    sh -c 'echo entered; until [ -e "$0" ]; do sleep 0.1; done' "$BATS_TEST_TMPDIR/$name.end"
  wait_for_stdout "$name" entered
}
release_hold() {
  touch "$BATS_TEST_TMPDIR/$1.end"
  wait_background "$1"
}

needs_mounts() { unshare --mount true 2>/dev/null || skip "needs root with CAP_SYS_ADMIN"; }

# in_mounts SCRIPT ARGUMENT…: bash in a mount namespace of its own.
in_mounts() { unshare --mount --propagation private bash -euo pipefail -c "$@"; }

# --- The commands ---

@test "run holds the lock while its command runs, and status names it" {
  hold first --note "v1"
  run -75 redlock-cli run -k demo -n -- touch "$BATS_TEST_TMPDIR/ran"
  assert_output --partial "held by $(id -un)@"
  [[ ! -e $BATS_TEST_TMPDIR/ran ]]
  run -75 redlock-cli status -k demo --exit-code
  assert_output --partial "v1"
  run -0 redlock-cli status
  assert_line --regexp '^demo +held .* "v1" .* renewed$'
  release_hold first
  assert_equal "$status" 0
  run -0 redlock-cli status -k demo --exit-code
  run -0 redlock-cli status
  assert_output "no locks"
}

@test "status lists the locks, and reports other and unreadable files" {
  hold first
  local fifo directory link broken other
  fifo=$(file_of fifo) directory=$(file_of directory) link=$(file_of link) broken=$(file_of broken)
  other=$(file_of other)
  mkfifo "$STORE/$fifo"
  mkdir "$STORE/$directory"
  ln -s /etc/passwd "$STORE/$link"
  echo nonsense >"$STORE/$broken"
  touch "$STORE/$other"
  chmod 000 "$STORE/$other"
  echo "no lock" >"$STORE/README"
  run -0 --separate-stderr redlock-cli status
  assert_line --regexp '^demo +held '
  local name
  for name in "$fifo" "$directory" "$link" "$broken"; do
    assert_line --partial "not read: local:$STORE: $name: "
  done
  ((EUID == 0)) || assert_line --partial "not read: local:$STORE: $other: "
  refute_output --partial README
  assert_equal "$stderr" ""
  run -0 --separate-stderr redlock-cli status --json
  assert_equal "$(jq -r '.locks[0].key, (.skipped | length >= 4)' <<<"$output")" $'demo\ntrue'
  run -75 redlock-cli status --exit-code
  release_hold first
  run -69 redlock-cli status --exit-code
  run -0 redlock-cli run -k demo -- true
  local i
  for ((i = 0; i < 20; ++i)); do mkfifo "$STORE/$(file_of "fifo$i")"; done
  run -0 redlock-cli status
  assert_line --regexp '^not read: 1[0-9] more$'
}

@test "acquire --while-pid holds the lock until that process ends" {
  start_background script bash -c 'redlock-cli acquire -k demo --while-pid $$ && exec sleep 1000'
  wait_for_stdout script
  run -75 redlock-cli status -k demo --exit-code
  kill "${BACKGROUND_PID[script]}"
  wait_until redlock-cli run -k demo -n -- true
}

@test "a lock that is broken is lost: its command is stopped, 79" {
  start_background first redlock-cli run -k demo -t 6s -- sh -c 'echo entered; exec sleep 1000'
  wait_for_stdout first entered
  run -0 redlock-cli release -k demo --force
  assert_output --partial "$(id -un)@"
  wait_background first
  assert_equal "$status" 79
}

@test "a lock whose file is removed is lost: its command is stopped, 79" {
  start_background first redlock-cli run -k demo -t 6s -- sh -c 'echo entered; exec sleep 1000'
  wait_for_stdout first entered
  rm "$STORE/$(file_of demo)"
  wait_background first
  assert_equal "$status" 79
}

@test "a lease in one directory is not valid in another" {
  local lease
  lease=$(redlock-cli acquire -k demo -t 30s --export)
  eval "$lease"
  mkdir "$BATS_TEST_TMPDIR/elsewhere"
  assert_refused 78 "was acquired on other servers" \
    redlock-cli release -S "local:$BATS_TEST_TMPDIR/elsewhere"
  run -0 redlock-cli release -S "local:$STORE//"
}

# --- The user's own place ---

@test "-S local: needs no server, no variables and no particular directory" {
  use_own_place
  start_background first redlock-cli run -S local: -k "$OWN_KEY" \
    -- sh -c 'echo entered; until [ -e "$0" ]; do sleep 0.1; done' "$BATS_TEST_TMPDIR/end"
  wait_for_stdout first entered
  cd /
  run -75 env -i "$REDLOCK_CLI" run -S local: -k "$OWN_KEY" -n -- true
  touch "$BATS_TEST_TMPDIR/end"
  wait_background first
  run -0 env -i "$REDLOCK_CLI" run -S local: -k "$OWN_KEY" -n -- true
  assert_equal "$(stat -c '%U %a' "/run/lock/redlock-cli-$EUID")" "$(id -un) 700"
}

@test "local: locks of two users are independent, those in a shared directory are not" {
  ((EUID == 0)) || skip "only root can be two users"
  use_own_place
  local nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups env -i -C / "$REDLOCK_CLI")
  "${nobody[@]}" --version >/dev/null 2>&1 ||
    skip "an ordinary user cannot reach the program under test"
  local shared
  shared=$(mktemp -d /tmp/rl-local.XXXXXX)
  chmod 1777 "$shared"
  start_background first redlock-cli run -S local: -k "$OWN_KEY" \
    -- redlock-cli run -S "local:$shared" -k demo -- \
    sh -c 'echo entered; until [ -e "$0" ]; do sleep 0.1; done' "$BATS_TEST_TMPDIR/end"
  wait_for_stdout first entered
  run -0 "${nobody[@]}" run -S local: -k "$OWN_KEY" -n -- true
  rm -f "/run/lock/redlock-cli-65534/$(file_of "$OWN_KEY")"
  run -75 "${nobody[@]}" run -S "local:$shared" -k demo -n -- true
  touch "$BATS_TEST_TMPDIR/end"
  wait_background first
  run -0 "${nobody[@]}" run -S "local:$shared" -k demo -n -- true
  run -0 "${nobody[@]}" run -S "local:$shared" -k theirs -n -- true
  run -0 redlock-cli run -S "local:$shared" -k theirs -n -- true
  rm -r "$shared"
}

@test "what root is the first to make in a directory of a user is the user's" {
  ((EUID == 0)) || skip "only root can be two users"
  local theirs user=(setpriv --reuid 65534 --regid 65534 --clear-groups env -i -C / "$REDLOCK_CLI")
  "${user[@]}" --version >/dev/null 2>&1 || skip "an ordinary user cannot reach the program under test"
  theirs=$(mktemp -d /tmp/rl-local.XXXXXX)
  chown 65534 "$theirs"
  chmod 755 "$theirs"
  export REDLOCK_SERVER=local:$theirs
  start_background holder redlock-cli run -k demo -- \
    sh -c 'echo entered; until [ -e "$0" ]; do sleep 0.1; done' "$BATS_TEST_TMPDIR/holder.end"
  wait_for_stdout holder entered
  run -75 "${user[@]}" run -S "local:$theirs" -k demo -n -- true
  start_background waiter redlock-cli run -k demo -- true
  wait_until compgen -G "$theirs/wake-*"
  assert_equal "$(find "$theirs" -mindepth 1 ! -uid 65534)" ""
  release_hold holder
  wait_background waiter
  run -0 "${user[@]}" run -S "local:$theirs" -k demo -n -- true
  run -0 "${user[@]}" run -S "local:$theirs" -k other -n -- true

  # A file that the user cannot open is named.
  chown 0 "$theirs"/*
  run "${user[@]}" run -S "local:$theirs" -k demo -n -- true
  assert_output --partial "cannot open $theirs/"
  rm -r "$theirs"
}

@test "files of other programs stay, whatever their names" {
  local file key names=(clock-tower.jpg "clock-$(</proc/sys/kernel/random/boot_id)" .new-123
    "$(file_of "another's")" "$(file_of "another's with content")")
  touch -d '2 days ago' "${names[@]/#/"$STORE/"}"
  echo mine >"$STORE/${names[4]}"
  for key in demo{0..9}; do run -0 redlock-cli run -k "$key" -- true; done
  for file in "${names[@]}"; do [[ -e $STORE/$file ]] || fail "$file is gone"; done
}

# --- What is refused ---

@test "local: is chosen, never fallen back to: without any server 78 names it" {
  unset REDLOCK_SERVER
  run --separate-stderr -78 redlock-cli run -k demo -- touch "$BATS_TEST_TMPDIR/ran"
  assert_regex "$stderr" "-S local:"
  [[ ! -e $BATS_TEST_TMPDIR/ran ]]
}

@test "local: cannot be one of several servers" {
  for servers in "local:,redis://h" "redis://h,local:" "local:,local:" \
    "local:$STORE,local:$STORE"; do
    assert_refused 78 "cannot be one of several" redlock-cli run -S "$servers" -k demo -- true
  done
  assert_refused 78 "cannot be one of several" \
    redlock-cli run -S local: -S redis://h -k demo -- true
}

@test "an unusable lock directory is 78" {
  assert_refused 78 "absolute path" redlock-cli run -S local:relative -k demo -- true
  assert_refused 78 "no such file or directory; make it, for all users to share: mkdir -m 1777 \
$STORE/none" redlock-cli run -S "local:$STORE/none" -k demo -- true
  assert_refused 78 "it has no scheme; use redis://host:6379" redlock-cli status -S "$STORE"
  assert_regex "$stderr" "local: or local:/directory$"
  touch "$BATS_TEST_TMPDIR/file"
  assert_refused 78 "not a directory" redlock-cli run -S "local:$BATS_TEST_TMPDIR/file" -k demo -- true
  ln -s "$STORE" "$BATS_TEST_TMPDIR/link"
  assert_refused 78 "symbolic link" \
    redlock-cli run -S "local:$BATS_TEST_TMPDIR/link" -k demo -- true
  chmod 777 "$STORE"
  assert_refused 78 "any user can remove files there" redlock-cli run -k demo -- true
}

@test "a user's own directory that others can access is 78, and local:/DIRECTORY is named" {
  needs_mounts
  run -0 in_mounts '
    mount -t tmpfs -o mode=1777 none /run/lock
    refused() {
      local said status=0
      said=$("$0" run -S local: -k demo -- true 2>&1) || status=$?
      [[ $status == 78 && $said == *"$1"* && $said == *local:/DIRECTORY* ]] || {
        echo "$status: $said"
        exit 1
      }
    }
    own=/run/lock/redlock-cli-0
    mkdir -m 755 "$own"; refused "owned by you"
    chmod 700 "$own"; chown 65534 "$own"; refused "owned by you"
    rmdir "$own"; ln -s /tmp "$own"; refused "symbolic link"
    rm "$own"; chmod 777 /run/lock; refused "not safe"
    chmod 1777 /run/lock; "$0" run -S local: -k demo -- true
    mount -o remount,ro /run/lock; refused "read-only file system"
    rm -rf "$own" 2>/dev/null || true
    mount -t tmpfs -o ro,mode=1777 none /run/lock; refused "read-only file system"' "$REDLOCK_CLI"
}

@test "where /run/lock is root's alone, 78 names the line for tmpfiles.d, which helps" {
  needs_mounts
  run -0 in_mounts '
    user() { env -u HOME setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
    mount -t tmpfs -o mode=755 none /run/lock
    chmod 755 "$1" "$1/.." "${1%/*/*}"
    cp "$0" "$1/program"
    status=0
    said=$(user "$1/program" run -S local: -k demo -- true 2>&1) || status=$?
    echo "$status: $said"
    [[ $status == 78 && $said == *local:/DIRECTORY* ]]
    line="d /run/lock/redlock-cli-65534 0700 65534 65534"
    [[ $said == *"tmpfiles.d"*"$line"* ]]
    install -d -m 700 -o 65534 -g 65534 /run/lock/redlock-cli-65534
    user "$1/program" run -S local: -k demo -- true' "$REDLOCK_CLI" "$BATS_TEST_TMPDIR"
}

@test "whatever becomes of the mode of /run/lock, no second holder gets in" {
  needs_mounts
  run -0 in_mounts '
    mount -t tmpfs -o mode=1777 none /run/lock
    chmod 755 "$1" "$1/.." "${1%/*/*}"
    cp "$0" "$1/program"
    PROGRAM=$1/program
    mkdir -m 777 "$1/files"
    set -- "$1/files"
    run() {
      env -u HOME setpriv --reuid 65534 --regid 65534 --clear-groups "$PROGRAM" run -S local: -k demo "$@"
    }
    run -- sh -c "echo >\$0/held; until [ -e \$0/end ]; do sleep 0.05; done" "$1" &
    until [ -e "$1/held" ]; do sleep 0.05; done
    for mode in 755 1777 700 1777 777 1777 000; do
      chmod "$mode" /run/lock
      status=0
      run -n -- touch "$1/second" || status=$?
      [[ ! -e $1/second && $status == @(75|78) ]]
    done
    chmod 1777 /run/lock
    touch "$1/end"
    wait
    run -n -- true' "$REDLOCK_CLI" "$BATS_TEST_TMPDIR"
}

@test "without /proc it is 78" {
  needs_mounts
  run -78 in_mounts 'mount -t tmpfs none /proc && exec "$0" acquire -k demo -t 30s' "$REDLOCK_CLI"
  assert_output --partial "/proc/self/ns"
}

# --- Boots ---

@test "a boot id of its own, as containers have, neither frees a lock nor replaces a clock" {
  needs_mounts
  local before
  hold first -t 10m
  before=$(cut -c -21 "$STORE/clock-redlock-cli")
  cat /proc/sys/kernel/random/uuid >"$BATS_TEST_TMPDIR/boot_id"
  run -75 in_mounts 'mount --bind "$1" /proc/sys/kernel/random/boot_id
    "$0" run -k other -n -- true
    exec "$0" run -k demo -n -- touch "$1.ran"' "$REDLOCK_CLI" "$BATS_TEST_TMPDIR/boot_id"
  [[ ! -e $BATS_TEST_TMPDIR/boot_id.ran ]]
  assert_equal "$(cut -c -21 "$STORE/clock-redlock-cli")" "$before"
  assert_equal "$(find "$STORE" -name 'clock-*' | wc -l)" 1
  run -75 redlock-cli run -k demo -n -- true
  release_hold first
}

# --- What goes wrong ---

@test "a full file system grants nothing, and still takes a release" {
  needs_mounts
  run -0 in_mounts '
    mount -t tmpfs -o size=32k,mode=700 none "$1"
    export REDLOCK_SERVER=local:$1
    token=$1/../token
    "$0" acquire -k demo -t 60s --token-file "$token"
    cat /dev/zero >"$1/fill" 2>/dev/null || true
    status=0
    said=$("$0" run -k other -n -- echo ran 2>&1) || status=$?
    [[ $status == 69 && $said == *"no space left"* && $said != *ran* ]] || {
      echo "$status: $said"
      exit 1
    }
    "$0" extend -t 90s --token-file "$token"
    "$0" release --token-file "$token"
    "$0" run -k demo -n -- true
    rm "$1/fill"
    "$0" run -k other -n -- true' "$REDLOCK_CLI" "$STORE"
}

@test "a process that is stopped with the file locked makes the server silent, not the lock free" {
  redlock-cli run -k demo -- true
  start_background other flock --no-fork "$STORE/$(file_of demo)" sleep 1000
  wait_until bash -c '! flock -n "$0" true' "$STORE/$(file_of demo)"
  run -69 redlock-cli run -k demo -n --server-timeout 50ms -- touch "$BATS_TEST_TMPDIR/ran"
  assert_output --partial "has the lock file locked"
  [[ ! -e $BATS_TEST_TMPDIR/ran ]]
}

@test "a truncated lock file never admits a second holder" {
  local file size
  file=$STORE/$(file_of demo)
  # No renewal falls into this.
  hold first -t 10m
  cp --sparse=always "$file" "$BATS_TEST_TMPDIR/whole"
  for size in 1 8 64 199 200 201 300 1000 4096 262143 262144 262145 262343 262344 262500 300000 \
    524287 524289; do
    truncate -s "$size" "$file"
    run -69 redlock-cli run -k demo -n -- touch "$BATS_TEST_TMPDIR/ran"
    assert_output --partial "$(file_of demo)"
    [[ ! -e $BATS_TEST_TMPDIR/ran ]]
    cp --sparse=always "$BATS_TEST_TMPDIR/whole" "$file"
    run -75 redlock-cli run -k demo -n -- true
  done
  release_hold first
  assert_equal "$status" 0
}

@test "a lock file that another program overwrote does not free the lock: 69 names the file, and when to remove it" {
  local file
  file=$STORE/$(file_of demo)
  hold first -t 10m
  dd if=/dev/urandom of="$file" bs=16 count=1 conv=notrunc status=none
  dd if=/dev/urandom of="$file" bs=16 count=1 seek=16384 conv=notrunc status=none
  run -69 redlock-cli run -k demo -n -- touch "$BATS_TEST_TMPDIR/ran"
  assert_output --partial \
    "its file is damaged: $file; when nothing runs under that lock, remove it"
  [[ ! -e $BATS_TEST_TMPDIR/ran ]]
  release_hold first
}

@test "two bytes written over the newest header of a held lock let no second command run: 69" {
  local file newest
  file=$STORE/$(file_of demo)
  hold first -t 10m
  # Little-endian or not, of two generations below 256 the newer differs in one byte alone.
  newest=0
  if [[ $(od -An -tu1 -j 8 -N 8 "$file") < $(od -An -tu1 -j $((256 * 1024 + 8)) -N 8 "$file") ]]; then
    newest=$((256 * 1024))
  fi
  printf xx | dd of="$file" bs=1 seek=$((newest + 30)) conv=notrunc status=none
  run -69 redlock-cli run -k demo -n -- touch "$BATS_TEST_TMPDIR/ran"
  assert_output --partial "its file is damaged: $file"
  [[ ! -e $BATS_TEST_TMPDIR/ran ]]
  release_hold first
}

@test "locks also work where renameat2 is refused, as in some containers" {
  local error
  for error in EPERM ENOSYS EINVAL; do
    run -0 strace -f -o /dev/null -e "inject=renameat2:error=$error" \
      "$REDLOCK_CLI" run -k "demo-$error" -n -- echo ran
    assert_output ran
  done
}

@test "a file that another member of the group puts in place of a FIFO is neither opened to the group nor removed" {
  ((EUID == 0)) || skip "only root can be two users"
  local group=$BATS_TEST_TMPDIR/group
  mkdir "$group"
  chgrp 65534 "$group"
  chmod 2770 "$group"
  echo secret >"$BATS_TEST_TMPDIR/private"
  chmod 600 "$BATS_TEST_TMPDIR/private"
  export REDLOCK_SERVER=local:$group
  hold first
  # The waiter pauses when it has made its FIFO: as long as it takes to put the file there.
  start_background waiter strace -f -o /dev/null -e inject=mknodat:delay_exit=2000000:when=1 \
    "$REDLOCK_CLI" run -k demo -w 5s -- true
  wait_until compgen -G "$group/.redlock-cli-new-*"
  mv "$BATS_TEST_TMPDIR/private" "$(compgen -G "$group/.redlock-cli-new-*")"
  release_hold first
  wait_background waiter
  assert_equal "$status" 0
  run find "$group" -type f -size -100c -name '[.w]*' -printf '%m %l\n'
  assert_output '600 '
}

@test "of many processes one at a time holds the lock" {
  local counter=$BATS_TEST_TMPDIR/counter i worker
  echo 0 >"$counter"
  # Reads, waits, writes: an overlap loses an increment.
  WAIT_LIMIT=120
  local add='n=$(cat "$0"); sleep 0.002; echo $((n + 1)) >"$0"'
  for worker in 1 2 3 4; do
    start_background "$worker" bash -ec '
      for ((i = 0; i < 15; ++i)); do
        redlock-cli run -k demo -w 60 --retry-delay 5ms -- sh -c "$0" "$1"
      done' "$add" "$counter"
  done
  for worker in 1 2 3 4; do
    wait_background "$worker"
    assert_equal "$status" 0
  done
  assert_equal "$(<"$counter")" 60
}

@test "kill -9 of everything at any moment neither blocks the lock nor admits two holders" {
  local i front holder witness=$BATS_TEST_TMPDIR/witness
  touch "$witness"
  start_background steady bash -c '
    until [[ -e $0 ]]; do
      redlock-cli run -k demo -t 20s -w 60 --retry-delay 5ms -- flock -n "$1" sleep 0.005 ||
        echo "overlap or error $?"
    done' "$BATS_TEST_TMPDIR/enough" "$witness"
  for ((i = 0; i < 25; ++i)); do
    redlock-cli run -k demo -t 2s -w 60 --retry-delay 5ms \
      -- flock -n "$witness" sleep 0.05 2>/dev/null &
    front=$!
    sleep "0.0$((SRANDOM % 60 + 10))"
    holder=$(cat "/proc/$front/task/$front/children" 2>/dev/null) || true
    # shellcheck disable=SC2086  # none, or one
    kill -KILL "$front" $holder 2>/dev/null || true
    wait "$front" 2>/dev/null || true
  done
  touch "$BATS_TEST_TMPDIR/enough"
  wait_background steady
  assert_equal "$output" ""
  run -0 redlock-cli run -k demo -w 20 -- true
}

@test "another time namespace, with its own time since boot, is refused: all locks would seem expired" {
  unshare --time --boottime 100000 true 2>/dev/null || skip "this user may not make time namespaces"
  hold holder -t 30s
  local command=(redlock-cli run -k demo -n -- touch "$BATS_TEST_TMPDIR/ran")
  assert_refused 78 "it is used in another time namespace than ours" \
    unshare --time --boottime 100000 --fork "${command[@]}"
  assert [ ! -e "$BATS_TEST_TMPDIR/ran" ]
  run -75 "${command[@]}"
  release_hold holder
  run -0 "${command[@]}"
}
