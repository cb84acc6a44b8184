#!/usr/bin/env bats
# bats file_tags=smoke
# A lease that a script handles itself: acquire, extend, release, status.
load helper/common

setup() {
  setup_one_server
  allow_late_answers
}

# A key that only survives a shell if it is quoted correctly.
HARD_KEY=$'it\'s "one" `$(touch evil)` \\ ;&|*\n second line '

# acquire KEY TTL [OPTION…]: acquires the lock and puts the lease into the environment.
acquire() {
  local exports
  exports=$(redlock-cli acquire -k "$1" --ttl "${@:2}" --export)
  eval "$exports"
}

# in_shell SHELL SCRIPT [ARGUMENT…]: SCRIPT in a shell that reads no user's settings.
in_shell() {
  local shell=$1 script=$2
  shift 2
  case $shell in
    bash) bash --norc --noprofile -c "$script" bash "$@" ;;
    zsh) zsh -f -c "$script" zsh "$@" ;;
    *) "$shell" -c "$script" "$shell" "$@" ;;
  esac
}

SHELLS=(bash dash zsh)

# --- acquire ---

@test "acquire prints only the token that is stored under the key" {
  run -0 --separate-stderr redlock-cli acquire -k demo --ttl 60s
  assert_regex "$output" '^[0-9a-f]{32}$'
  assert_equal "$stderr" ""
  assert_equal "$(redis 0 get demo)" "$output"
  assert_in_range "$(redis 0 pttl demo)" 1 60000
}

@test "acquire prints its token although the limit of pending signals is used up" {
  run -0 --separate-stderr bash -c 'ulimit -i 0; exec redlock-cli acquire -k demo --ttl 60s'
  assert_equal "$output" "$(redis 0 get demo)"
}

@test "acquire without --ttl is refused: nothing would renew the lease" {
  assert_refused 64 "--ttl" redlock-cli acquire -k demo
  assert_equal "$(keys_at 0)" ""
}

@test "an acquired lock excludes others and names its holder" {
  run -0 redlock-cli acquire -k demo --ttl 60s --note "weekly backup"
  assert_refused 75 "weekly backup" redlock-cli acquire -k demo --ttl 60s -n
  assert_regex "$stderr" \
    "held by $(id -un)@$(hostname) \\(pid [0-9]+: [^)]+\\), \"weekly backup\", for [0-9.]+m?s, \
expires in [0-9.]+m?s?"
  assert_refused 75 "weekly backup" redlock-cli run -k demo -n -- true
  run -9 --separate-stderr redlock-cli acquire -k demo --ttl 60s -n -E 9 -q
  assert_equal "$output$stderr" ""
  run -0 --separate-stderr redlock-cli run -k demo -n -E 0 -q -- echo ran
  assert_equal "$output$stderr" ""
}

@test "an acquired lock expires with its ttl" {
  run -0 redlock-cli acquire -k demo --ttl 3s --server-timeout 500ms
  run -0 redlock-cli run -k demo -- true
}

@test "a lease that cannot be written to stdout is released again: 71" {
  run -71 bash -c 'redlock-cli acquire -k demo --ttl 60s >/dev/full'
  assert_output --partial "the lock was released"
  assert_equal "$(locks_at 0)" ""
  run -71 bash -c 'redlock-cli acquire -k demo --ttl 60s --export >&-'
  assert_equal "$(locks_at 0)" ""
  run -71 bash -c 'redlock-cli acquire -k demo --ttl 60s --json >/dev/full'
  assert_equal "$(locks_at 0)" ""
}

@test "a lease that cannot be written to its token file is released again: 71" {
  # The name leaves no room for that of a temporary file.
  assert_refused 71 "the lock was released" \
    redlock-cli acquire -k demo --ttl 60s --token-file "$BATS_TEST_TMPDIR/$(printf '%0250d' 0)"
  assert_equal "$(locks_at 0)" ""
}

# --- --export ---

@test "eval of --export sets the four variables in every shell, whatever the key" {
  local shell
  for shell in "${SHELLS[@]}"; do
    run -0 in_shell "$shell" '
      eval "$(redlock-cli acquire -k "$1" --ttl 60s --export)" || exit
      [ "$REDLOCK_KEY" = "$1" ] || exit 101
      [ "$(env | grep -c "^REDLOCK_\(KEY\|TOKEN\|FENCE\|LEASE\)=")" = 4 ] || exit 102
      [ "${#REDLOCK_TOKEN}" = 32 ] || exit 103
      [ "$REDLOCK_FENCE" -gt 0 ] || exit 104
      redlock-cli extend --ttl 90s || exit
      redlock-cli release' "$HARD_KEY"
    assert [ ! -e evil ]
    assert_equal "$shell: $(redis 0 exists "$HARD_KEY")" "$shell: 0"
  done
}

@test "fish reads --export as other shells do, also a key with backslashes and quotes" {
  type -P fish >/dev/null || skip "needs fish"
  local key
  for key in 'a\b' "it's" 'a\\b\' "\\'" 'a$(b) *'; do
    KEY=$key run -0 --separate-stderr fish --no-config -c '
      redlock-cli acquire -k "$KEY" --ttl 60s --export | source; or exit
      test "$REDLOCK_KEY" = "$KEY"; or exit 101
      redlock-cli extend --ttl 90s; or exit
      redlock-cli release'
    assert_equal "$key: $stderr" "$key: "
    assert_equal "$key: $(redis 0 exists "$key")" "$key: 0"
  done
}

@test "in fish, the line for a lock that is not granted fails, and shows no secret" {
  type -P fish >/dev/null || skip "needs fish"
  hold other
  run -1 --separate-stderr fish --no-config -c '
    redlock-cli acquire -k demo --ttl 60s --export -n | source; or exit
    echo survived'
  assert_output ""
  release_hold other
}

@test "the recipe of the manual works in every shell" {
  local shell
  for shell in "${SHELLS[@]}"; do
    run -0 in_shell "$shell" '
      l=$(redlock-cli acquire -k demo --ttl 60s --export) || exit
      eval "$l"
      redlock-cli extend --ttl 60s
      redlock-cli release'
    hold other
    run -75 --separate-stderr in_shell "$shell" '
      l=$(redlock-cli acquire -k demo --ttl 60s --export -n) || exit
      eval "$l"
      echo survived'
    assert_equal "$output" ""
    release_hold other
    rm "$BATS_TEST_TMPDIR/other.end"
  done
}

# eval_fails CODE OPTION…: eval of an acquire that fails with CODE gives CODE and unsets the
# variables; in every shell, also with set -e.
eval_fails() {
  local code=$1 shell
  shift
  for shell in "${SHELLS[@]}"; do
    run --separate-stderr in_shell "$shell" '
      REDLOCK_KEY=old REDLOCK_TOKEN=old REDLOCK_FENCE=old REDLOCK_LEASE=old
      export REDLOCK_KEY REDLOCK_TOKEN REDLOCK_FENCE REDLOCK_LEASE
      eval "$(redlock-cli acquire "$@" --export)"
      echo "$? ${REDLOCK_KEY-unset} ${REDLOCK_TOKEN-unset} ${REDLOCK_FENCE-unset}" \
        "${REDLOCK_LEASE-unset}"' "$@"
    assert_equal "$shell $*: $output" "$shell $*: $code unset unset unset unset"
    run --separate-stderr in_shell "$shell" \
      'set -e; eval "$(redlock-cli acquire "$@" --export)"; echo survived' "$@"
    assert_equal "$shell -e $*: $status $output" "$shell -e $*: $code "
  done
}

@test "eval of an acquire that found the lock busy fails with its exit code" {
  run -0 redlock-cli acquire -k demo --ttl 60s
  eval_fails 75 -k demo --ttl 60s -n
  eval_fails 9 -k demo --ttl 60s -n -E 9
}

# bats test_tags=redis
@test "eval of an acquire without a quorum fails with its exit code" {
  kill_server 0
  eval_fails 69 -k demo --ttl 60s -n
}

@test "eval of an acquire with a wrong command line fails with its exit code" {
  eval_fails 64 -k demo
  eval_fails 64 -k demo --ttl 60s --no-such-option
  eval_fails 64 --ttl 60s
  eval_fails 64 -k demo --ttl 5x
}

@test "eval of an acquire with a wrong configuration fails with its exit code" {
  eval_fails 78 -k demo --ttl 60s -S nonsense
  unset REDLOCK_SERVER
  eval_fails 78 -k demo --ttl 60s
  export REDLOCK_SERVER=
  eval_fails 78 -k demo --ttl 60s
  export REDLOCK_SERVER=$SERVERS REDLOCK_CONFIG=$BATS_TEST_TMPDIR/config.toml
  echo 'nonsense = 1' >"$REDLOCK_CONFIG"
  eval_fails 78 -k demo --ttl 60s
}

@test "with 0 as the conflict code eval succeeds, and still leaves no lease" {
  run -0 redlock-cli acquire -k demo --ttl 60s
  local shell
  for shell in "${SHELLS[@]}"; do
    run -0 --separate-stderr in_shell "$shell" \
      'REDLOCK_TOKEN=old; eval "$(redlock-cli acquire -k demo --ttl 60s -n -E 0 --export)" &&
      echo "${REDLOCK_TOKEN-unset}"'
    assert_equal "$output" unset
  done
}

@test "acquire ignores a conflict code of 0 from a setting: a script must not continue without the lock" {
  run -0 redlock-cli acquire -k demo --ttl 60s
  mkdir -p "$XDG_CONFIG_HOME/redlock-cli"
  echo 'conflict-exit-code = 0' >"$XDG_CONFIG_HOME/redlock-cli/config.toml"
  run -0 redlock-cli run -k demo -n -- false
  run -75 --separate-stderr redlock-cli acquire -k demo --ttl 60s -n --export
  assert_equal "$output" \
    "unset REDLOCK_KEY REDLOCK_TOKEN REDLOCK_FENCE REDLOCK_LEASE; (exit 75)"
  REDLOCK_CONFLICT_EXIT_CODE=0 run -75 redlock-cli acquire -k demo --ttl 60s -n
  REDLOCK_CONFLICT_EXIT_CODE=7 run -7 redlock-cli acquire -k demo --ttl 60s -n
  run -0 redlock-cli acquire -k demo --ttl 60s -n -E 0
}

@test "--export overrides a setting for JSON" {
  REDLOCK_JSON=1 run -0 --separate-stderr redlock-cli acquire -k demo --ttl 60s --export
  assert_regex "$output" "^export REDLOCK_KEY='demo' "
  REDLOCK_JSON=1 run -75 --separate-stderr redlock-cli acquire -k demo --ttl 60s -n --export
  assert_regex "$output" "^unset REDLOCK_KEY "
}

# --- extend and release from the environment ---

@test "extend gives the lease a new ttl, release ends it" {
  acquire demo 30s
  run -0 --separate-stderr redlock-cli extend --ttl 10m
  assert_equal "$output$stderr" ""
  assert_in_range "$(redis 0 pttl demo)" 500000 600000
  assert_in_range "$(redis 0 pttl 'redlock:owner:{demo}')" 500000 600000
  run -0 --separate-stderr redlock-cli release
  assert_equal "$output$stderr" ""
  assert_unlocked demo 0
  run -0 redlock-cli run -k demo -n -- true
}

@test "extend without --ttl is refused" {
  acquire demo 60s
  assert_refused 64 "--ttl" redlock-cli extend
}

@test "a second release succeeds and says that the lease was released already" {
  acquire demo 60s
  run -0 redlock-cli release
  run -0 redlock-cli release
  assert_output "redlock-cli: demo: already released"
  run -0 --separate-stderr redlock-cli release -q
  assert_equal "$output$stderr" ""
  run -0 --separate-stderr redlock-cli release --json
  assert_equal "$(json '(j["result"], j["exit_code"], j["message"])')" \
    "('released', 0, 'already released')"
}

@test "a second release leaves the next holder's lease alone" {
  acquire demo 60s
  run -0 redlock-cli release
  hold ours
  run -0 redlock-cli release
  assert_output --partial "demo: already released"
  assert_equal "$(redis 0 exists demo)" 1
  release_hold ours
  assert_equal "$status" 0
}

@test "a release after the lock was broken fails with 79, each time" {
  acquire demo 60s
  run -0 redlock-cli release demo --force --reason "stuck"
  assert_refused 79 "stuck" redlock-cli release
  assert_refused 79 "stuck" redlock-cli release
}

@test "of several keys each may have been released already" {
  eval "$(redlock-cli acquire -k one -k two -t 60s --export)"
  run -0 redlock-cli release
  run -0 redlock-cli release
  assert_line "redlock-cli: one: already released"
  assert_line "redlock-cli: two: already released"
}

@test "extend after release fails with 79 and reports that the lease was released" {
  acquire demo 60s
  run -0 redlock-cli release
  assert_refused 79 "demo: cannot extend: it was released" redlock-cli extend --ttl 60s
  assert_unlocked demo 0
}

@test "a lease that expired or was deleted is lost: 79, and not brought back" {
  acquire demo 60s
  redis 0 del demo
  assert_refused 79 "it is gone" redlock-cli extend --ttl 60s
  assert_refused 79 "it is gone" redlock-cli release
  assert_equal "$(redis 0 exists demo)" 0
  acquire demo 3s --server-timeout 500ms
  wait_for_no_key 0 demo
  assert_refused 79 "it is gone" redlock-cli extend --ttl 60s
}

@test "a lease whose lock now has another holder is lost: 79, and the other's lease is untouched" {
  acquire demo 60s
  redis 0 set demo theirs px 60000
  assert_refused 79 "held by a foreign client" redlock-cli extend --ttl 60s
  assert_refused 79 "held by a foreign client" redlock-cli release
  assert_equal "$(redis 0 get demo)" theirs
  redis 0 del demo
  hold other --note "their turn"
  assert_refused 79 "their turn" redlock-cli extend --ttl 60s
  assert_refused 79 "their turn" redlock-cli release
  release_hold other
  assert_equal "$status" 0
}

@test "without a lease extend and release are refused, and name the ways to provide one" {
  assert_refused 64 "no lease" redlock-cli extend --ttl 60s
  assert_refused 64 "no lease" redlock-cli release
  refute_regex "$stderr" "--force"
  redlock-cli acquire -k demo --ttl 60s
  assert_refused 64 "no lease" redlock-cli release -k demo
  assert_regex "$stderr" "; release it with the file that .acquire. wrote, or with its token"
  refute_regex "$stderr" "--force"
  assert_refused 64 "no lease" env REDLOCK_LEASE= redlock-cli release
  assert_refused 64 "no lease" env REDLOCK_KEY=demo redlock-cli release
}

@test "a handle that is no lease is refused" {
  local handle
  acquire demo 60s
  for handle in nonsense "${REDLOCK_LEASE}0x" "9${REDLOCK_LEASE}" "${REDLOCK_LEASE%.*}" \
    "$REDLOCK_LEASE "; do
    assert_refused 64 "REDLOCK_LEASE" env REDLOCK_LEASE="$handle" redlock-cli release
  done
  assert_refused 64 "REDLOCK_TOKEN" env -u REDLOCK_LEASE REDLOCK_TOKEN=nonsense redlock-cli release
  run -0 redlock-cli release
}

@test "the key and the token alone are enough" {
  local token
  token=$(redlock-cli acquire -k demo --ttl 60s)
  run -0 env REDLOCK_TOKEN="$token" redlock-cli extend -k demo --ttl 10m
  assert_in_range "$(redis 0 pttl demo)" 500000 600000
  run -0 env REDLOCK_TOKEN="$token" redlock-cli release -k demo
  assert_unlocked demo 0
  token=$(redlock-cli acquire -k demo --ttl 60s)
  run -0 env REDLOCK_TOKEN="$token" REDLOCK_KEY=demo redlock-cli release
  assert_unlocked demo 0
  run -0 env REDLOCK_TOKEN="$token" REDLOCK_KEY=demo redlock-cli release
  assert_output --partial "demo: already released"
}

@test "another holder's token releases nothing" {
  run -0 redlock-cli acquire -k demo --ttl 60s
  assert_refused 79 "held by" env REDLOCK_TOKEN=0123456789abcdef0123456789abcdef \
    redlock-cli release -k demo
  assert_equal "$(redis 0 exists demo)" 1
}

@test "a lease for another key than -k names is refused" {
  acquire demo 60s
  redlock-cli acquire -k other --ttl 60s >/dev/null
  assert_refused 64 "other: not on hold, and no lease of it is set" redlock-cli release -k other
  assert_refused 64 "the lease is for demo, not for other" redlock-cli extend -k other --ttl 60s
  run -0 redlock-cli extend -k demo --ttl 60s
  run -0 redlock-cli release -k demo
}

# bats test_tags=redis
@test "a lease from another set of servers is refused: 78" {
  start_servers 2
  export REDLOCK_SERVER=$SERVERS
  acquire_at_all
  assert_refused 78 "was acquired on other servers" redlock-cli release -S "$SERVER_URL"
  assert_regex "$stderr" "another spelling.* Configured now: $SERVER_URL$"
  assert_refused 78 "was acquired on other servers" \
    redlock-cli extend -S "${SERVER_URL[0]},${SERVER_URL[1]}" --ttl 60s
  assert_equal "$(redis 0 exists demo)" 1
  # In a different order they are the same set.
  run -0 redlock-cli release -S "${SERVER_URL[2]},${SERVER_URL[0]},${SERVER_URL[1]}"
  assert_unlocked demo 0 1 2
}

@test "the lease of a live run can only be released by run: 64, and the run continues" {
  local lease
  lease=$BATS_TEST_TMPDIR/lease
  start_background holder redlock-cli run -k demo \
    -- sh -c 'echo "$REDLOCK_LEASE"; until [ -e "$0" ]; do sleep 0.1; done' "$lease.end"
  wait_for_stdout holder
  REDLOCK_LEASE=$(<"$(background_stdout holder)")
  export REDLOCK_LEASE
  assert_refused 64 "held by \`redlock-cli run\`" redlock-cli release
  assert_equal "$(redis 0 exists demo)" 1
  run -0 redlock-cli extend --ttl 60s
  touch "$lease.end"
  wait_background holder
  assert_equal "$status" 0
  assert_unlocked demo 0
}

# --- token files ---

@test "a token file takes the lease to another shell" {
  local file=$BATS_TEST_TMPDIR/lease
  run -0 --separate-stderr redlock-cli acquire -k demo --ttl 60s --token-file "$file"
  assert_equal "$output$stderr" ""
  cd /
  run -0 env -i PATH="$PATH" HOME="$HOME" \
    redlock-cli extend -S "$SERVERS" --token-file "$file" --ttl 10m
  assert_in_range "$(redis 0 pttl demo)" 500000 600000
  run -0 env -i PATH="$PATH" HOME="$HOME" redlock-cli release -S "$SERVERS" --token-file "$file"
  assert_unlocked demo 0
  run -0 redlock-cli release --token-file "$file"
  assert_output --partial "demo: already released"
}

@test "a token file overrides the environment" {
  acquire one 60s
  run -0 redlock-cli acquire -k two --ttl 60s --token-file "$BATS_TEST_TMPDIR/lease"
  run -0 redlock-cli release --token-file "$BATS_TEST_TMPDIR/lease"
  assert_equal "$(redis 0 exists one) $(redis 0 exists two)" "1 0"
}

@test "only its owner can read a token file, whatever the umask" {
  local file=$BATS_TEST_TMPDIR/lease mask
  for mask in 000 022 777; do
    (
      umask "$mask"
      redlock-cli acquire -k "key $mask" --ttl 60s --token-file "$file"
    )
    assert_equal "$(stat -c %a "$file")" 600
    run -0 redlock-cli release --token-file "$file"
  done
  assert_equal "$(cd "$BATS_TEST_TMPDIR" && ls -d lease*)" lease
}

@test "an old token file, even another user's, is replaced, not overwritten" {
  local file=$BATS_TEST_TMPDIR/lease
  echo old >"$file"
  chmod 666 "$file"
  run -0 redlock-cli acquire -k one --ttl 60s --token-file "$file"
  assert_equal "$(stat -c %a "$file")" 600
  run -0 redlock-cli release --token-file "$file"
}

@test "a token file never replaces a device, pipe, socket, directory or link: 78, and nothing is locked" {
  local dir=$BATS_TEST_TMPDIR/places name
  mkdir -p "$dir/directory"
  echo precious >"$dir/target"
  ln -s target "$dir/link"
  ln -s nowhere "$dir/dangling"
  ln -s /dev/null "$dir/null"
  mkfifo "$dir/pipe"
  /usr/bin/python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' \
    "$dir/socket"
  # Root could replace /dev/null itself: this one stands for it.
  if [[ $EUID == 0 ]] && mknod "$dir/device" c 1 3; then name=device; else name=; fi
  local before
  before=$(cd "$dir" && stat -c '%N %i' -- *)
  for name in directory pipe socket $name; do
    assert_refused 78 "$dir/$name: is not a regular file" \
      redlock-cli acquire -k demo --ttl 60s --token-file "$dir/$name"
  done
  for name in link dangling null; do
    assert_refused 78 "$dir/$name: is a symbolic link" \
      redlock-cli acquire -k demo --ttl 60s --token-file "$dir/$name"
  done
  assert_equal "$(cd "$dir" && stat -c '%N %i' -- *)" "$before"
  assert_equal "$(<"$dir/target")" precious
  assert_equal "$(keys_at 0)" ""
}

@test "a token file that cannot be written is refused before the wait and the lock" {
  local dir=$BATS_TEST_TMPDIR
  redis 0 set demo theirs
  assert_refused 78 "--token-file: the path is empty" \
    redlock-cli acquire -k demo --ttl 60s -w 2s --token-file ""
  assert_refused 78 "$dir/none/lease: cannot write to its directory: no such file or directory" \
    redlock-cli acquire -k demo --ttl 60s -w 2s --token-file "$dir/none/lease"
  touch "$dir/file"
  assert_refused 78 "$dir/file/lease: cannot write to its directory: not a directory" \
    redlock-cli acquire -k demo --ttl 60s -w 2s --token-file "$dir/file/lease"
  if ((EUID != 0)); then
    mkdir -m 500 "$dir/locked"
    assert_refused 78 "cannot write to its directory: permission denied" \
      redlock-cli acquire -k demo --ttl 60s -w 2s --token-file "$dir/locked/lease"
  fi
  assert_equal "$(keys_at 0)" demo
}

@test "a shell can source a token file, whatever the key" {
  local file=$BATS_TEST_TMPDIR/lease shell
  cd "$BATS_TEST_TMPDIR"
  run -0 redlock-cli acquire -k "$HARD_KEY" --ttl 60s --token-file "$file"
  for shell in "${SHELLS[@]}"; do
    run -0 in_shell "$shell" \
      '. "$1"; [ "$REDLOCK_KEY" = "$2" ] && echo "$REDLOCK_TOKEN $REDLOCK_FENCE"' \
      "$file" "$HARD_KEY"
    assert_equal "$shell $output" \
      "$shell $(redis 0 get "$HARD_KEY") $(redis 0 hget "redlock:owner:{$HARD_KEY}" fence)"
  done
  run -0 in_shell dash 'set -a; . "$1"; redlock-cli extend --ttl 60s && redlock-cli release' "$file"
  assert_equal "$(redis 0 exists "$HARD_KEY")" 0
  assert [ ! -e evil ]
}

@test "a token file that others can read or write is refused" {
  local file=$BATS_TEST_TMPDIR/lease mode
  run -0 redlock-cli acquire -k demo --ttl 60s --token-file "$file"
  for mode in 640 604 620 602 610 601 666; do
    chmod "$mode" "$file"
    assert_refused 78 "$file: can be read by others" redlock-cli release --token-file "$file"
  done
  chmod 644 "$file"
  assert_refused 78 "$file: can be read by others" redlock-cli extend --ttl 60s --token-file "$file"
  assert_equal "$(redis 0 exists demo)" 1
  chmod 400 "$file"
  run -0 redlock-cli release --token-file "$file"
}

@test "a token file that is a link, a directory, a pipe or missing is refused" {
  local file=$BATS_TEST_TMPDIR/lease
  run -0 redlock-cli acquire -k demo --ttl 60s --token-file "$file"
  ln -s "$file" "$BATS_TEST_TMPDIR/link"
  mkdir "$BATS_TEST_TMPDIR/directory"
  mkfifo -m 600 "$BATS_TEST_TMPDIR/pipe"
  assert_refused 78 "symbolic link" redlock-cli release --token-file "$BATS_TEST_TMPDIR/link"
  assert_refused 78 "not a regular file" \
    redlock-cli release --token-file "$BATS_TEST_TMPDIR/directory"
  assert_refused 78 "not a regular file" \
    redlock-cli extend --ttl 60s --token-file "$BATS_TEST_TMPDIR/pipe"
  assert_refused 78 "no such file" redlock-cli release --token-file "$BATS_TEST_TMPDIR/missing"
  assert_refused 78 "--token-file: the path is empty" redlock-cli release --token-file ""
  assert_equal "$(redis 0 exists demo)" 1
}

@test "a token file of another user is refused, even for root" {
  ((EUID == 0)) || skip "only root can give a file away"
  local file=$BATS_TEST_TMPDIR/lease
  run -0 redlock-cli acquire -k demo --ttl 60s --token-file "$file"
  chown 65534 "$file"
  assert_refused 78 "belongs to another user" redlock-cli release --token-file "$file"
  assert_equal "$(redis 0 exists demo)" 1
}

@test "a malformed token file is refused without showing what is in it" {
  local file=$BATS_TEST_TMPDIR/lease good content
  run -0 redlock-cli acquire -k demo --ttl 60s --token-file "$file"
  good=$(<"$file")
  for content in "" x "REDLOCK_LEASE='secret'"$'\n' "REDLOCK_LEASE=''"$'\n' "REDLOCK_LEASE='" \
    "${good:0:40}" "${good#*$'\n'}" \
    $'\n'"$good" "${good/REDLOCK_LEASE=/REDLOCK_LEASE =}"; do
    printf '%s' "$content" >"$file"
    assert_refused 78 "$file: is not a lease file" redlock-cli release --token-file "$file"
    [[ $stderr != *secret* ]]
  done
  head -c 100000 /dev/zero >"$file"
  assert_refused 78 "$file: is not a lease file" redlock-cli release --token-file "$file"
  printf '%s\n' "$good" >"$file"
  run -0 redlock-cli release --token-file "$file"
}

@test "a key with lines like those of a token file cannot replace the lease" {
  local file=$BATS_TEST_TMPDIR/lease
  acquire victim 60s
  run -0 redlock-cli acquire -k $'x\n'"REDLOCK_LEASE='$REDLOCK_LEASE'"$'\n' --ttl 60s \
    --token-file "$file"
  run -0 redlock-cli release --token-file "$file"
  assert_equal "$(redis 0 exists victim)" 1
}

# --- breaking a lock ---

@test "release --force breaks any holder's lock and names the holder" {
  run -0 redlock-cli acquire -k demo --ttl 60s --note "weekly backup"
  run -0 redlock-cli release -k demo --force
  assert_output --regexp \
    "demo: broken; it was held by $(id -un)@$(hostname) \\(pid [0-9]+.*\"weekly backup\""
  assert_unlocked demo 0
  run -0 redlock-cli release -k demo --force
  assert_output --partial "nothing to break"
}

@test "release --force leaves a foreign key alone, and shows it" {
  local no_lock="left alone: not a lock of redlock-cli, or one whose owner record was lost:"
  redis 0 set demo theirs px 60000
  run -64 --separate-stderr redlock-cli release -k demo --force
  assert_regex "$stderr" \
    "^redlock-cli: demo: $no_lock a string of 6 bytes, expires in [0-9.ms]+; \
\`redlock-cli release -k demo --force --foreign\` breaks it$"
  assert_equal "$(redis 0 get demo)" theirs
  redis 0 del demo
  redis 0 hset demo field 1
  run -64 --separate-stderr redlock-cli release -k demo --force
  assert_regex "$stderr" "$no_lock a key of type hash with 1 element, without expiry; "
  refute_regex "$stderr" "breaks it"
  run -64 --separate-stderr redlock-cli release -k demo --force --json
  assert_equal "$(json '(j["result"], j["holder"]["foreign"], j["holder"]["type"])')" \
    "('usage', True, 'hash')"
  assert_equal "$(redis 0 hget demo field)" 1
}

@test "--foreign shows a foreign key of any type, and then breaks it" {
  redis 0 hset demo field 1
  run -0 redlock-cli release -k demo --force --foreign
  assert_line --index 0 --regexp "^redlock-cli: demo: breaking what is not a lock of redlock-cli: \
a key of type hash with 1 element, without expiry$"
  assert_line --index 1 --partial \
    "demo: broken; it was held by a foreign client (a key of type hash)"
  assert_equal "$(keys_at 0)" ""
  # A lock of redlock-cli does not need the option, and is broken too.
  run -0 redlock-cli acquire -k demo --ttl 60s
  run -0 redlock-cli release -k demo --force --foreign
  assert_output --partial "demo: broken; it was held by $(id -un)@"
  run -0 redlock-cli release -k demo --force --foreign
  assert_output --partial "nothing to break"
  assert_refused 64 "goes with --force" redlock-cli release -k demo --foreign
  assert_refused 64 "--if-fence" redlock-cli release -k demo --force --foreign --if-fence 5
}

@test "a lock whose owner record was lost is only broken with --foreign, and the message says so" {
  run -0 redlock-cli acquire -k demo --ttl 60s
  redis 0 del 'redlock:owner:{demo}'
  assert_refused 64 "or one whose owner record was lost" redlock-cli release -k demo --force
  run -0 redlock-cli release -k demo --force --foreign
  assert_equal "$(redis 0 exists demo)" 0
}

# bats test_tags=redis
@test "data of each type is left alone, and shown with its size" {
  local type
  local -A made_by=([string]="set demo 12345" [hash]="hset demo a 1 b 2 c 3" [set]="sadd demo a b c"
    [list]="rpush demo a b c" [zset]="zadd demo 1 a 2 b 3 c" [stream]="xadd demo 1-1 a 1")
  local -A shown=([string]="a string of 5 bytes" [hash]="a key of type hash with 3 elements"
    [set]="a key of type set with 3 elements" [list]="a key of type list with 3 elements"
    [zset]="a key of type zset with 3 elements" [stream]="a key of type stream with 1 element")
  for type in "${!made_by[@]}"; do
    # shellcheck disable=SC2086
    redis 0 ${made_by[$type]}
    run -64 redlock-cli release -k demo --force
    assert_output --partial "lost: ${shown[$type]}, without expiry; find out whose data it is"
    assert_equal "$(redis 0 type demo)" "$type"
    redis 0 del demo
  done
}

# bats test_tags=redis
@test "with different data on several servers --foreign shows all that it breaks, and where" {
  start_servers 2
  export REDLOCK_SERVER=$SERVERS
  redis 0 hset demo field 1
  redis 1 set demo 12345
  redis 2 set demo 12345
  assert_refused 64 "a key of type hash with 1 element, without expiry; at " \
    redlock-cli release -k demo --force
  run -0 redlock-cli release -k demo --force --foreign
  assert_line --index 0 --regexp \
    "breaking what is not a lock of redlock-cli: at [^,;]+: a key of type hash with 1 element, \
without expiry; at [^,;]+, [^,;]+: a string of 5 bytes, without expiry$"
  for nr in 0 1 2; do assert_equal "$(redis "$nr" exists demo)" 0; done
}

# bats test_tags=redis
@test "a lock that was broken only on a minority is not reported as left alone" {
  start_servers 2
  export REDLOCK_SERVER=$SERVERS
  run -0 redlock-cli acquire -k demo --ttl 60s
  for nr in 0 1; do redis "$nr" set demo theirs; done
  assert_refused 64 "demo: broken at 1 of 3 servers only; left alone: not a lock of redlock-cli" \
    redlock-cli release -k demo --force
  assert_equal "$(redis 2 exists demo)" 0
}

# bats test_tags=redis
@test "release --force works on a quorum and on the remains of one" {
  start_servers 4
  export REDLOCK_SERVER=$SERVERS
  run -0 redlock-cli acquire -k demo --ttl 60s
  kill_server 0
  kill_server 1
  run -0 redlock-cli release -k demo --force
  assert_unlocked demo 2 3 4
  run -0 redlock-cli acquire -k demo --ttl 60s
  kill_server 2
  assert_refused 69 "${SERVER_URL[2]}" redlock-cli release -k demo --force
}

@test "--if-fence breaks the lock only if it is still that one" {
  acquire demo 60s
  assert_refused 79 "left alone, it has another fence" \
    redlock-cli release -k demo --force --if-fence $((REDLOCK_FENCE - 1))
  assert_regex "$stderr" "held by $(id -un)@"
  assert_equal "$(redis 0 exists demo)" 1
  run -0 redlock-cli release -k demo --force --if-fence "$REDLOCK_FENCE"
  assert_unlocked demo 0
}

@test "--if-fence leaves a foreign lock alone: it has no fence" {
  redis 0 set demo theirs px 60000
  assert_refused 79 "left alone" redlock-cli release -k demo --force --if-fence 1
  assert_equal "$(redis 0 get demo)" theirs
}

@test "--force needs -k, and --if-fence needs --force" {
  acquire demo 60s
  assert_refused 64 "release --force needs KEY" redlock-cli release --force
  assert_refused 64 "--if-fence goes with --force" redlock-cli release -k demo --if-fence 5
  assert_refused 64 "--if-fence" redlock-cli release -k demo --force --if-fence x
  assert_refused 64 "--if-fence" redlock-cli release -k demo --force --if-fence -1
  assert_equal "$(redis 0 exists demo)" 1
}

@test "extend reports how long the lease is valid, and what failed" {
  acquire demo 90s
  run -0 --separate-stderr redlock-cli extend --ttl 60s --json
  assert_in_range "$(json 'j["valid_ms"]')" 1 60000
  run -0 redlock-cli extend --ttl 20s -v
  # Never shortened.
  assert_output "redlock-cli: demo: the lease lasts for at least 20s from now on"
  assert_in_range "$(redis 0 pttl demo)" 20001 90000
  run -0 --separate-stderr redlock-cli run -k outer -- sh -c '
    export REDLOCK_SERVER_TIMEOUT=250ms
    l=$(redlock-cli acquire -k outer --ttl 5s --export) && eval "$l" &&
      redlock-cli extend --ttl 5s --json -v'
  assert_equal "$stderr" \
    "redlock-cli: outer: the lease belongs to the enclosing run or acquire, and still \
stands; nothing was extended"
  assert_equal "$(json '(j["result"], "valid_ms" in j)')" "('inherited', False)"
}

@test "the command that the refusal of a run's lease suggests works as printed" {
  hold holder
  local token
  token=$(redis 0 get demo)
  REDLOCK_TOKEN=$token REDLOCK_KEY=demo run -64 redlock-cli release
  [[ $output =~ \`(redlock-cli release.*)\` ]]
  run -0 bash -c "${BASH_REMATCH[1]}"
  assert_output --partial "demo: broken"
  # So does the command in the message about a foreign lock that is left alone.
  redis 0 set demo theirs px 60000
  run -64 redlock-cli release -k demo --force
  [[ $output =~ \`(redlock-cli release.*)\` ]]
  run -0 bash -c "${BASH_REMATCH[1]}"
  assert_equal "$(redis 0 exists demo)" 0
  wait_background holder
}

# --- status ---

@test "status shows the holder, since when and for how long, the note and the fence" {
  run -0 redlock-cli status -k demo
  assert_line "demo: free"
  acquire demo 90s
  run -0 --separate-stderr redlock-cli status -k demo
  assert_line --partial "demo: held by $(id -un)@$(hostname) (pid "
  assert_line --regexp '^demo: held by .*, for [0-9.]+m?s, expires in 1m([0-9]+s)?$'
  assert_line "  fence $REDLOCK_FENCE"
  assert_equal "$stderr" ""
}

@test "status names the command of a run" {
  hold holder --note "nightly build"
  run -0 redlock-cli status -k demo
  assert_line --regexp \
    "^demo: held by $(id -un)@$(hostname) \\(run pid ${BACKGROUND_PID[holder]}: sh\\), \
\"nightly build\", for .*, last renewed .* ago$"
  release_hold holder
}

@test "status of several keys shows each" {
  acquire one 60s
  run -0 redlock-cli status -k one -k two
  assert_line --partial "one: held by"
  assert_line "two: free"
}

@test "status without -k lists every lock of redlock-cli, whatever its key" {
  run -0 redlock-cli status
  assert_output "no locks"
  redis 0 set foreign x px 60000
  acquire one 60s
  acquire two 60s
  run -0 redlock-cli release
  acquire '{a}b' 60s
  acquire $'x\ny' 60s
  run -0 redlock-cli status
  assert_line --regexp '^KEY +STATE +HOLDER( +PID)? +SINCE +LEASE$'
  assert_line --regexp "^one +held +$(id -un)@$(hostname) .* [0-9:]{8} [0-9]+s +[0-9]+s left$"
  assert_line --regexp '^\{a\}b +held '
  assert_line --regexp '^x\\ny +held '
  assert_line '3 locks: 3 held'
  refute_output --partial two
  refute_output --partial foreign
}

@test "status --exit-code distinguishes free from held, also silently" {
  run -0 redlock-cli status -k demo --exit-code
  acquire demo 60s
  run -75 redlock-cli status -k demo --exit-code
  run -75 --separate-stderr redlock-cli status -k demo --exit-code -q
  assert_equal "$output$stderr" ""
  run -75 redlock-cli status -k other -k demo --exit-code
  run -0 redlock-cli status -k other --exit-code
  run -75 redlock-cli status --exit-code
  run -0 redlock-cli status -k demo
}

@test "status --watch refreshes until interrupted" {
  start_background watcher redlock-cli status -k demo --watch
  wait_for_stdout watcher "demo: free"
  acquire demo 60s
  wait_for_stdout watcher "demo: held by"
  kill -INT "${BACKGROUND_PID[watcher]}"
  wait_background watcher
  assert_equal "$status" 130
}

# --- JSON ---

@test "acquire --json shows the lease, or that the lock is busy" {
  run -0 --separate-stderr redlock-cli acquire -k demo --ttl 60s --json
  assert_equal "$(json '[j[f] for f in ("command", "key", "result", "exit_code", "ttl_ms")]')" \
    "['acquire', 'demo', 'acquired', 0, 60000]"
  assert_equal "$(json 'j["token"]')" "$(redis 0 get demo)"
  assert_equal "$(json 'j["fence"]')" "$(redis 0 get 'redlock:fence:{demo}')"
  REDLOCK_LEASE=$(json 'j["lease"]') run -0 redlock-cli extend --ttl 60s
  run -75 --separate-stderr redlock-cli acquire -k demo --ttl 60s --json -n
  assert_equal "$(json '[j[f] for f in ("command", "key", "result", "exit_code")]')" \
    "['acquire', 'demo', 'busy', 75]"
  assert_equal "$(json '[j["holder"][f] for f in ("user", "host", "foreign", "supervised")]')" \
    "['$(id -un)', '$(hostname)', False, False]"
  assert_equal "$(json 'sorted(set(j) & {"token", "lease"})')" "[]"
}

@test "extend --json and release --json show the result" {
  acquire demo 60s
  run -0 --separate-stderr redlock-cli extend --ttl 60s --json
  assert_equal "$(json '[j[f] for f in ("command", "key", "result", "exit_code")]')" \
    "['extend', 'demo', 'extended', 0]"
  run -0 --separate-stderr redlock-cli release --json
  assert_equal "$(json '[j[f] for f in ("command", "key", "result", "exit_code")]')" \
    "['release', 'demo', 'released', 0]"
  run -79 --separate-stderr redlock-cli extend --ttl 60s --json
  assert_equal "$(json '[j["result"], "released" in j["message"]]')" "['lost', True]"
  acquire demo 60s
  redis 0 del demo >/dev/null
  run -79 --separate-stderr redlock-cli release --json
  assert_equal "$(json '[j[f] for f in ("command", "key", "result", "exit_code")]')" \
    "['release', 'demo', 'lost', 79]"
}

@test "release --force --json names the holder" {
  hold holder --ttl 60s --note "their work"
  run -0 --separate-stderr redlock-cli release -k demo --force --json
  assert_equal \
    "$(json '[j["result"],
      j["holder"]["note"], j["holder"]["program"], j["holder"]["supervised"]]')" \
    "['broken', 'their work', 'sh', True]"
  run -0 --separate-stderr redlock-cli release -k demo --force --json
  assert_equal "$(json '[j["result"], j["exit_code"]]')" "['free', 0]"
}

# bats test_tags=redis
@test "status --json shows the answer of each server" {
  start_servers 2
  kill_server 2
  export REDLOCK_SERVER=$SERVERS
  acquire demo 60s
  run -0 --separate-stderr redlock-cli status -k demo -k other --json
  assert_equal \
    "$(json '[j["command"], j["exit_code"], [(l["key"], l["state"]) for l in j["locks"]]]')" \
    "['status', 0, [('demo', 'held'), ('other', 'free')]]"
  assert_equal "$(json '[s["state"] for s in j["locks"][0]["servers"]]')" \
    "['held', 'held', 'fault']"
  assert_equal "$(json '[s["server"] for s in j["locks"][0]["servers"]]')" \
    "['${SERVER_URL[0]}', '${SERVER_URL[1]}', '${SERVER_URL[2]}']"
  assert_equal "$(json 'j["locks"][0]["holder"]["fence"]')" "$REDLOCK_FENCE"
  assert_equal "$(json '0 < j["locks"][0]["holder"]["remaining_ms"] <= 60000')" True
  assert_equal "$(json 'j["faults"][0]["server"]')" "${SERVER_URL[2]}"
}

@test "JSON is valid even for a key that is not UTF-8" {
  run -0 --separate-stderr redlock-cli acquire -k $'\x01\xff"\\' --ttl 60s --json
  assert_equal "$(json '__import__("base64").urlsafe_b64decode(j["key_base64"] + "==")')" \
    "b'\\x01\\xff\"\\\\'"
  run -0 --separate-stderr redlock-cli status --json
  assert_equal "$(json 'j["locks"][0]["state"]')" held
}

# bats test_tags=redis
@test "without a quorum the JSON names each server's fault" {
  kill_server 0
  run -69 --separate-stderr redlock-cli acquire -k demo --ttl 60s -n --json
  assert_equal "$(json '[j["result"], j["faults"][0]["server"]]')" \
    "['unavailable', '${SERVER_URL[0]}']"
  run -69 --separate-stderr redlock-cli status -k demo --json
  assert_equal "$(json 'j["locks"][0]["state"]')" unavailable
}
