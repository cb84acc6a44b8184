#!/usr/bin/env bats
# The configuration files: their places, their owners, and who may read them.
load helper/common
load helper/settings

setup() { setup_settings; }

# A directory that another user may enter; removed after the test.
PUBLIC=
teardown() {
  common_teardown
  [[ -z $PUBLIC ]] || rm -r "$PUBLIC"
}

# As root of a private mount namespace, in which /etc is a copy that contains the system's
# configuration file.
with_system_file() {
  local etc=$BATS_TEST_TMPDIR/etc name private=(unshare --mount)
  ((EUID == 0)) || private=(unshare --user --map-root-user --mount)
  "${private[@]}" true 2>/dev/null || skip "no mount namespaces here"
  mkdir -p "$etc"
  for name in passwd group hosts nsswitch.conf ld.so.cache resolv.conf; do
    [[ ! -e /etc/$name ]] || cp -L "/etc/$name" "$etc"
  done
  cp "$BATS_TEST_TMPDIR/system.toml" "$etc/redlock-cli.toml"
  "${private[@]}" sh -c 'mount --bind "$0" /etc && exec "$@"' "$etc" "$@"
}

@test "the user's file overrides the system's, setting by setting" {
  printf '%s\n' 'conflict-exit-code = 12' "server = \"$SERVERS\"" >"$BATS_TEST_TMPDIR/system.toml"
  unset REDLOCK_SERVER
  run -12 with_system_file redlock-cli run -k busy -n -- true
  user_file 'conflict-exit-code = 13'
  run -13 with_system_file redlock-cli run -k busy -n -- true
  run -14 with_system_file env REDLOCK_CONFLICT_EXIT_CODE=14 redlock-cli run -k busy -n -- true
  user_file 'retry-delay = "50ms"'
  run -12 with_system_file redlock-cli run -k busy -n -- true
  echo 'nonsense = 1' >"$BATS_TEST_TMPDIR/system.toml"
  run -78 with_system_file redlock-cli run -k busy -n -S "$SERVERS" -- true
  assert_output --partial "/etc/redlock-cli.toml: line 1, column 1: unknown setting"
}

@test "a system file that a user may not read does not stop a user who names servers" {
  ((EUID == 0)) || skip "only root makes a file that others cannot read"
  echo "server = \"$SERVERS\"" >"$BATS_TEST_TMPDIR/system.toml"
  chmod 600 "$BATS_TEST_TMPDIR/system.toml"
  local -a as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all env
    HOME=/nonexistent XDG_CONFIG_HOME=/nonexistent)
  "${as_user[@]}" test -x "$REDLOCK_CLI" ||
    skip "an ordinary user cannot reach the program under test"
  local place=$BATS_TEST_TMPDIR/place
  mkdir "$place"
  chmod 1777 "$place"
  chmod a+x "$BATS_TEST_TMPDIR" "$(dirname "$BATS_TEST_TMPDIR")" \
    "$(dirname "$(dirname "$BATS_TEST_TMPDIR")")"
  "${as_user[@]}" test -w "$place" || skip "an ordinary user cannot reach the test's directory"
  run -0 with_system_file "${as_user[@]}" "$REDLOCK_CLI" run -S "local:$place" -k demo -- true
  assert_output "redlock-cli: /etc/redlock-cli.toml: permission denied; its settings are not used"
  run -0 with_system_file "${as_user[@]}" "$REDLOCK_CLI" run -q -S "local:$place" -k demo -- true
  assert_output ""
  # Without them it is still an error, and so is a file that was named.
  run -78 with_system_file "${as_user[@]}" env -u REDLOCK_SERVER "$REDLOCK_CLI" run -k demo -- true
  assert_output --partial "/etc/redlock-cli.toml: permission denied"
  run -78 with_system_file "${as_user[@]}" "$REDLOCK_CLI" run -S "local:$place" \
    --config /etc/redlock-cli.toml -k demo -- true
}

@test "of two exclusive settings, the user's file overrides the system's" {
  printf '%s\n' 'wait = "1h"' 'exclusive = true' >"$BATS_TEST_TMPDIR/system.toml"
  user_file 'nonblock = true' 'slots = 2'
  run -75 --separate-stderr with_system_file redlock-cli run -k busy -- true
  run -0 --separate-stderr with_system_file redlock-cli run -k demo -- sh -c 'echo "$REDLOCK_SLOT"'
  assert_output 0
}

@test "the user's file is in XDG_CONFIG_HOME, else in .config of HOME" {
  user_file 'conflict-exit-code = 13'
  mkdir -p "$BATS_TEST_TMPDIR/xdg/redlock-cli"
  echo 'conflict-exit-code = 16' >"$BATS_TEST_TMPDIR/xdg/redlock-cli/config.toml"
  XDG_CONFIG_HOME=$BATS_TEST_TMPDIR/xdg ends_with 16
  unset XDG_CONFIG_HOME
  ends_with 13
  # By the specification a relative path is ignored, and so is an empty one.
  cd "$BATS_TEST_TMPDIR"
  XDG_CONFIG_HOME=xdg ends_with 13
  XDG_CONFIG_HOME='' ends_with 13
  XDG_CONFIG_HOME=$BATS_TEST_TMPDIR/nothing ends_with 75
}

@test "without HOME the passwd entry names the directory, and a missing one is no error" {
  unset XDG_CONFIG_HOME HOME
  ends_with 75
  HOME='' ends_with 75
  HOME=/no/such/place ends_with 75
}

@test "--config and REDLOCK_CONFIG replace the usual places" {
  user_file 'conflict-exit-code = 13' 'quiet = true'
  echo 'conflict-exit-code = 17' >"$BATS_TEST_TMPDIR/one"
  echo 'conflict-exit-code = 18' >"$BATS_TEST_TMPDIR/two"
  ends_with 17 --config "$BATS_TEST_TMPDIR/one"
  assert_regex "$stderr" "held by"
  export REDLOCK_CONFIG=$BATS_TEST_TMPDIR/two
  ends_with 18
  ends_with 17 --config "$BATS_TEST_TMPDIR/one"
  : >"$BATS_TEST_TMPDIR/empty"
  ends_with 75 --config "$BATS_TEST_TMPDIR/empty"
}

@test "--config /dev/null means no settings" {
  user_file 'conflict-exit-code = 13'
  ends_with 13
  ends_with 75 --config /dev/null
}

@test "--config can be a variable, but not a line of a file" {
  user_file 'config = "/dev/null"'
  assert_refused 78 "$USER_FILE: line 1, column 1: config belongs on the command line" \
    redlock-cli status
}

@test "a file that was named and cannot be read is 78" {
  assert_refused 78 "/no/such/file" env REDLOCK_CONFIG=/no/such/file redlock-cli run -k demo -- true
  assert_refused 78 "/no/such/file" redlock-cli run -k demo --config /no/such/file -- true
  local text="the path is empty; use /dev/null for no settings"
  assert_refused 78 "REDLOCK_CONFIG: $text" env REDLOCK_CONFIG= redlock-cli run -k demo -- true
  assert_refused 78 "--config: $text" redlock-cli run -k demo --config '' -- true
  assert_refused 78 "not a regular file" \
    redlock-cli run -k demo --config "$BATS_TEST_TMPDIR" -- true
}

@test "a user's file that cannot be read is 78, and not skipped" {
  mkdir -p "$USER_FILE"
  assert_refused 78 "$USER_FILE: is not a regular file" redlock-cli run -k demo -- true
  rmdir "$USER_FILE"
  ln -s config.toml "$USER_FILE"
  assert_refused 78 "$USER_FILE: too many levels of symbolic links" redlock-cli run -k demo -- true
  rm "$USER_FILE"
  user_file 'ttl = "30s"'
  ((EUID != 0)) || skip "root may read everything"
  chmod 000 "$USER_FILE"
  assert_refused 78 "$USER_FILE: permission denied" redlock-cli run -k demo -- true
  chmod 600 "$USER_FILE"
  chmod 000 "$(dirname "$USER_FILE")"
  assert_refused 78 "$USER_FILE: permission denied" redlock-cli run -k demo -- true
  chmod 700 "$(dirname "$USER_FILE")"
}

@test "a file that is too long, or fails while it is read, is refused with its path: 78" {
  local path=$BATS_TEST_TMPDIR/long
  head -c 1048576 /dev/zero | tr '\0' '#' >"$path"
  run -0 redlock-cli status --config "$path"
  echo >>"$path"
  assert_refused 78 "$path: is longer than 1048576 bytes" redlock-cli status --config "$path"
  assert_refused 78 "/proc/self/mem: input/output error" redlock-cli status --config /proc/self/mem
}

@test "an inaccessible home of another user is skipped, our own file is not" {
  ((EUID == 0)) || skip "needs root"
  local public
  public=$(mktemp -d)
  PUBLIC=$public
  chmod 755 "$public"
  install -m 755 "$REDLOCK_CLI" "$public/redlock-cli"
  mkdir -p "$public/theirs/.config/redlock-cli" "$public/ours/.config/redlock-cli"
  echo 'conflict-exit-code = 13' >"$public/theirs/.config/redlock-cli/config.toml"
  cp "$public/theirs/.config/redlock-cli/config.toml" "$public/ours/.config/redlock-cli"
  chmod 700 "$public/theirs"
  chown -R nobody "$public/ours"
  chmod 000 "$public/ours/.config"
  local -a as_nobody=(setpriv --reuid nobody --clear-groups "$public/redlock-cli" doctor --settings)
  unset XDG_CONFIG_HOME
  HOME=$public/theirs run -0 "${as_nobody[@]}"
  assert_line "conflict-exit-code = 75 (default)"
  HOME=$public/theirs run -0 "${as_nobody[@]}" -v
  assert_output --partial "$public/theirs/.config/redlock-cli/config.toml: skipped: "
  XDG_CONFIG_HOME=$public/theirs/.config run -0 "${as_nobody[@]}"
  HOME=$public/ours run -78 "${as_nobody[@]}"
  assert_output --partial "$public/ours/.config/redlock-cli/config.toml: permission denied"
  chmod 755 "$public/theirs" "$public/ours/.config"
  chmod 600 "$public/theirs/.config/redlock-cli/config.toml"
  HOME=$public/theirs run -78 "${as_nobody[@]}"
  HOME=$public/ours run -0 "${as_nobody[@]}"
  assert_line --partial "conflict-exit-code = 13"
}

@test "a file that another user, or every user, may have written is refused, unless it is named" {
  user_file 'conflict-exit-code = 13'
  chmod 666 "$USER_FILE"
  assert_refused 78 "$USER_FILE: every user of this machine can write to it" \
    redlock-cli run -k busy -n -- true
  ends_with 13 --config "$USER_FILE"
  chmod 664 "$USER_FILE"
  ends_with 13
  ((EUID == 0)) || return 0
  chown nobody "$USER_FILE"
  assert_refused 78 "it belongs to another user (uid $(id -u nobody)); set HOME" \
    redlock-cli run -k busy -n -- true
  ends_with 13 --config "$USER_FILE"
  # Ours are root's, too, for another user.
  chown root "$USER_FILE"
  chmod 644 "$USER_FILE"
  local public
  public=$(mktemp -d)
  PUBLIC=$public
  chmod 755 "$public"
  install -m 755 "$REDLOCK_CLI" "$public/redlock-cli"
  install -D -m 644 "$USER_FILE" "$public/redlock-cli.d/redlock-cli/config.toml"
  XDG_CONFIG_HOME=$public/redlock-cli.d run -0 \
    setpriv --reuid nobody --clear-groups "$public/redlock-cli" doctor --settings
  assert_line --partial "conflict-exit-code = 13"
}
