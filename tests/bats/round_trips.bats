#!/usr/bin/env bats
# bats file_tags=smoke
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2154
# What an uncontended lock costs, counted at the server and at the socket.
load helper/common
load helper/redis

# agree_on_fences COUNT [REDIS-CLI-OPTION…]: the servers grant the same fence, whatever their clocks
# say, so that none is raised.
agree_on_fences() {
  local count=$1 i
  shift
  for ((i = 0; i < count; ++i)); do redis "$i" "$@" set 'redlock:fence:{demo}' 4000000000000 >/dev/null; done
}

# watch_commands I [REDIS-CLI-OPTION…]: from now on $(commands_seen) are the commands that clients
# send to server I.
watch_commands() {
  local i=$1
  shift
  start_background monitor redis-cli -s "${SERVER_SOCKET[i]}" "$@" monitor
  wait_until grep -qx OK "$(background_stdout monitor)"
}

# end_watch I [REDIS-CLI-OPTION…]: the names of the commands, one a line, in $seen. What a script
# calls is marked "lua" and does not count.
end_watch() {
  local i=$1
  shift
  redis "$i" "$@" echo end-of-watch >/dev/null
  wait_until grep -q end-of-watch "$(background_stdout monitor)"
  seen=$(sed -n '/end-of-watch/q; /^[0-9.]* \[[0-9]* lua\]/d; s/^[0-9.]* \[[^]]*\] "\([^"]*\)".*/\1/p' "$(background_stdout monitor)" |
    tr '[:lower:]' '[:upper:]')
  end_child "${BACKGROUND_PID[monitor]}"
  unset "BACKGROUND_PID[monitor]"
}

# is_scripts N: all that was seen is N calls of scripts.
is_scripts() {
  assert_equal "$(grep -Ec '^EVAL(SHA)?$' <<<"$seen")" "$1"
  assert_equal "$(grep -c . <<<"$seen")" "$1"
}

# teach: each server in SERVERS knows the scripts from now on.
teach() { run -0 redlock-cli status -S "$SERVERS" -k demo; }

@test "a run costs a server two commands, and two more at one that has never seen the scripts" {
  start_servers 1
  local commands seen
  for commands in 4 2 2; do
    watch_commands 0
    run -0 redlock-cli run -S "$SERVERS" -k demo -- true
    end_watch 0
    is_scripts "$commands"
  done
}

@test "neither of the two commands of a run is longer than a packet" {
  strace -f -o "$BATS_TEST_TMPDIR/probe" true 2>/dev/null || skip "strace cannot run here"
  start_tcp_server
  teach
  local calls=$BATS_TEST_TMPDIR/calls lengths
  run -0 env ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0" strace -f -s 100 -o "$calls" -e trace=write,writev,send,sendto,sendmsg,sendmmsg \
    redlock-cli run -S "$SERVERS" -k demo -- true
  mapfile -t lengths < <(sed -n '/"\*[0-9]*\\r\\n/s/.* = //p' "$calls")
  assert_equal "${#lengths[@]}" 2
  ((lengths[0] < 1460 && lengths[1] < 1460))
}

@test "each of three servers gets two commands, and one in front that it introduces itself with" {
  start_servers 3
  teach
  local seen
  agree_on_fences 3
  watch_commands 0
  # The hold ends only when every server has granted.
  local everywhere='until [ "$(for s; do redis-cli -s "$s" exists demo; done | grep -c 1)" = "$#" ]; do sleep 0.02; done'
  run -0 redlock-cli run -S "$SERVERS" -k demo -- sh -c "$everywhere" sh "${SERVER_SOCKET[1]}" "${SERVER_SOCKET[2]}"
  end_watch 0
  seen=${seen//EVALSHA/EVAL}
  assert_equal "${seen//$'\n'/ }" "INFO EVAL EVAL"
}

@test "acquire, extend and release cost one command each" {
  start_servers 1
  teach
  export REDLOCK_SERVER=$SERVERS
  local seen exports
  watch_commands 0
  exports=$(redlock-cli acquire -k demo -t 60s --export)
  end_watch 0
  is_scripts 1
  eval "$exports"
  watch_commands 0
  run -0 redlock-cli extend -t 60s
  end_watch 0
  is_scripts 1
  watch_commands 0
  run -0 redlock-cli release
  end_watch 0
  is_scripts 1
}

@test "a login and a database add commands but no round trips: they travel in front of the first script" {
  start_tcp_server --requirepass secret
  REDISCLI_AUTH=secret teach
  local seen
  watch_commands 0 --no-auth-warning -a secret
  run -0 env REDISCLI_AUTH=secret redlock-cli run -S "${SERVER_URL[0]}/2" -k demo -- true
  end_watch 0 --no-auth-warning -a secret
  # MONITOR never shows AUTH.
  assert_equal "$(grep -v '^AUTH$' <<<"$seen" | sed 's/EVALSHA/EVAL/' | paste -sd ' ')" "SELECT EVAL EVAL"
}

@test "AUTH, SELECT, INFO and the script are one write" {
  strace -f -o "$BATS_TEST_TMPDIR/probe" true 2>/dev/null || skip "strace cannot run here"
  start_tcp_server --requirepass secret
  start_tcp_server --requirepass secret
  REDISCLI_AUTH=secret teach
  local calls=$BATS_TEST_TMPDIR/calls
  agree_on_fences 2 --no-auth-warning -a secret -n 2
  # A build with AddressSanitizer cannot look for leaks under strace.
  run -0 env REDISCLI_AUTH=secret ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0" strace -f -s 1000000 -o "$calls" -e trace=write,writev,send,sendto,sendmsg,sendmmsg \
    redlock-cli run -S "${SERVER_URL[0]}/2,${SERVER_URL[1]}/2" -k demo -- true
  # What goes to the server begins with a RESP array.
  grep '"\*[0-9]*\\r\\n' "$calls" >"$calls.server"
  assert_equal "$(wc -l <"$calls.server")" 4
  local line
  for line in 1 2; do
    run -0 sed -n "${line}p" "$calls.server"
    assert_output --regexp '"\*[0-9]+\\r\\n\$4\\r\\nAUTH\\r\\n.*\$6\\r\\nSELECT\\r\\n.*\$4\\r\\nINFO\\r\\n.*\$7\\r\\nEVALSHA\\r\\n'
  done
  run -0 sed -n 3,4p "$calls.server"
  assert_output --regexp '\\r\\nEVALSHA\\r\\n'
}
