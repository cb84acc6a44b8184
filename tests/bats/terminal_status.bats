#!/usr/bin/env bats
# The output of `status` on a terminal: the screen in tmux, and the bytes that were sent.
load helper/common
load helper/terminal
load helper/tmux

setup() {
  setup_one_server
  allow_late_answers
}

forty_locks() {
  local i keys=()
  for ((i = 1; i <= 40; ++i)); do keys+=(-k "job$i"); done
  redlock-cli acquire "${keys[@]}" --ttl 1h --note "release 4.2" \
    --token-file "$BATS_TEST_TMPDIR/forty"
}

@test "80 by 24 and 200 by 50: no lock, one, and forty" {
  local size
  for size in "80 24" "200 50"; do
    # shellcheck disable=SC2086
    open_tmux $size
    type_in_tmux 'clear; redlock-cli status'
    see_on_screen '^no locks$'
    redlock-cli acquire -k 'größe 日本' --ttl 1h --note "release 4.2" \
      --token-file "$BATS_TEST_TMPDIR/lease"
    type_in_tmux 'clear; redlock-cli status'
    see_screen 'KEY STATE HOLDER SINCE LEASE
größe 日本 held ME bash "release 4.2" TIME AGE LEFT
1 lock: 1 held
$' '/^$/d'
    redlock-cli release --token-file "$BATS_TEST_TMPDIR/lease"
    forty_locks
    type_in_tmux 'clear; redlock-cli status | head -3; redlock-cli status | tail -3'
    see_screen 'KEY STATE HOLDER SINCE LEASE
job1 held ME bash "release 4.2" TIME AGE LEFT
job2 held ME bash "release 4.2" TIME AGE LEFT
job39 held ME bash "release 4.2" TIME AGE LEFT
job40 held ME bash "release 4.2" TIME AGE LEFT
40 locks: 40 held
$' '/^$/d'
    redlock-cli release --token-file "$BATS_TEST_TMPDIR/forty"
    tmux_here kill-server
  done
}

@test "a narrow terminal folds within the columns" {
  redlock-cli acquire -k a-key-that-is-rather-long --ttl 1h \
    --note "a reason of several words" >/dev/null
  open_tmux 60 24
  type_in_tmux 'clear; redlock-cli status'
  see_on_screen '^1 lock: 1 held$'
  run tmux_here capture-pane -p
  assert_line --regexp '^KEY +STATE +HOLDER +SINCE +LEASE$'
  assert_line --regexp '^ +[^ ]+( [^ ]+)*$' # the rest of a cell, below it
  run awk 'length > 60' <<<"$output"
  assert_output ""
}

# at_80_columns ARG…: what the program shows on such a terminal.
at_80_columns() {
  TERM=vt100 script -qec "stty cols 80; redlock-cli $*" /dev/null | tr '\r' '\n' |
    sed 's/\x1b\[K//'
}

@test "80 columns: a long key, host, command and note fit, and neither a pid nor the host is cut" {
  unshare --uts true 2>/dev/null || skip "needs root with CAP_SYS_ADMIN"
  local key host note pid shown
  printf -v key 'k%.0s' {1..70}
  printf -v host 'h%.0s' {1..64}
  printf -v note 'word %.0s' {1..60}
  executable a-command-whose-name-is-longer-than-most <<<$'#!/bin/sh\nexec sleep 1000' >/dev/null
  cd "$BATS_TEST_TMPDIR"
  start_background holder unshare --uts sh -c "hostname $host
    exec redlock-cli run -k $key --note '$note' -- ./a-command-whose-name-is-longer-than-most"
  wait_for_key 0 "$key"
  pid=${BACKGROUND_PID[holder]}
  shown=$(at_80_columns status)
  assert_equal "$(awk 'length > 80' <<<"$shown")" ""
  shown=$(at_80_columns status "$key")
  assert_equal "$(awk 'length > 80' <<<"$shown")" ""
  [[ $(tr -d ' \n' <<<"$shown") == *"@$host(runpid$pid:"* ]] || fail "cut: $shown"
  shown=$(at_80_columns run -k "$key" -w 2s -- true)
  assert_equal "$(grep '^waiting for' <<<"$shown" | awk 'length > 80')" ""
  assert_regex "$(grep -m 1 '^waiting for' <<<"$shown")" "@h+\.\.\. \(run pid $pid\)$"
  assert_equal "$(grep -oE 'pid [0-9]+' <<<"$shown" | sort -u)" "pid $pid"
}

@test "--watch fills the screen, follows its size, and restores it" {
  forty_locks
  open_tmux 80 24
  type_in_tmux 'clear; echo before'
  see_on_screen '^before$'
  type_in_tmux 'redlock-cli status --watch 0.2'
  # How many lines a lock takes depends on how long our names are.
  see_screen 'DATE TIME, every 200ms
40 locks: 40 held

KEY STATE HOLDER SINCE LEASE
N locks not shown in full: the terminal has no room' -n '1,4p; ${s/[0-9]*/N/; p}'
  assert_equal "$(tmux_here display-message -p '#{cursor_flag} #{alternate_on}')" "0 1"

  tmux_here resize-window -x 200 -y 50
  see_on_screen '^job40 held'
  run screen
  assert_line 'job1 held ME bash "release 4.2" TIME AGE LEFT'
  refute_output --partial "not shown"
  tmux_here resize-window -x 80 -y 24
  see_on_screen '^[0-9]+ locks not shown'

  press_in_tmux C-z
  see_on_screen 'Stopped'
  see_screen before -n 1p
  assert_equal "$(tmux_here display-message -p '#{cursor_flag} #{alternate_on}')" "1 0"
  type_in_tmux fg
  see_on_screen '^[0-9]+ locks not shown'
  press_in_tmux C-c
  see_on_screen '^before$'
  type_in_tmux 'echo "status $?"'
  see_on_screen '^status 130$'
  assert_equal "$(tmux_here display-message -p '#{cursor_flag} #{alternate_on}')" "1 0"
}

@test "--watch shows that a server dies, and continues" {
  start_servers 2
  export REDLOCK_SERVER=$SERVERS
  (acquire_at_all)
  open_tmux 200 50
  type_in_tmux 'redlock-cli status --watch=200ms'
  see_on_screen '^demo held '
  see_screen $'1 lock: 1 held|\n|\nKEY STATE HOLDER SINCE LEASE|' -n '2,4s/$/|/p'
  kill_server 1
  see_on_screen "^incomplete: ${SERVER_URL[1]}: "
  see_on_screen '^demo held '
  kill_server 2
  see_on_screen "^incomplete: .*; ${SERVER_URL[2]}: "
  see_on_screen '^demo unknown'
  tmux_here resize-window -x 80 -y 24
  see_on_screen '^DATE TIME, every 200ms$'
  see_on_screen '^demo unknown'
  press_in_tmux C-c
  wait_until shows_not '^demo'
}

@test "--watch of a key shows its details, and a signal ends it with the cursor shown" {
  open_terminal
  ask resize 24 40
  type_line 'export TERM=xterm'
  see_status 0
  type_line 'redlock-cli status demo --watch 0.1'
  see '\x1b\[\?1049h\x1b\[\?25l'
  see '\x1b\[Kdemo: free'
  hold first --note "release 4.2"
  see '\x1b\[Kdemo: held by [^\r]*\r+\n\x1b\[K    [^ ]'
  kill -TERM "$(foreground)"
  see '\x1b\[\?25h\x1b\[\?1049l'
  see_status 143
  release_hold first
}

@test "every signal that ends --watch restores the terminal" {
  open_terminal
  type_line 'export TERM=xterm'
  see_status 0
  local number
  # HUP, QUIT, USR1, USR2, ALRM, STKFLT, XCPU, VTALRM, PROF, IO, PWR and two real-time signals.
  for number in 1 3 10 12 14 16 24 26 27 29 30 34 64; do
    type_line 'redlock-cli status demo --watch 0.1'
    see '\x1b\[Kdemo: free'
    kill -s "$number" "$(foreground)"
    see '\x1b\[\?25h\x1b\[\?1049l'
    see_status $((128 + number))
    type_and_see_status "stty -a | grep -q ' icanon.* echo '" 0
  done
}

@test "q ends --watch, and the terminal echoes as before" {
  open_terminal
  type_line 'export TERM=xterm'
  see_status 0
  type_line 'redlock-cli status demo --watch 0.1'
  see '\x1b\[Kdemo: free'
  press xq
  see '\x1b\[\?25h\x1b\[\?1049l'
  see_status 0
  type_and_see_status "stty -a | grep -q ' icanon.* echo '" 0
  # Else `cat`, or a script at this terminal, would fail with EAGAIN.
  type_and_see_status "((8#\$(sed -n 's/flags:\t//p' /proc/\$\$/fdinfo/0) & 8#4000))" 1
}

@test "nothing is drawn in the background" {
  open_terminal
  type_line 'export TERM=xterm'
  see_status 0
  type_line 'redlock-cli status --watch 0.1'
  see '\x1b\[Kno locks'
  press "$CTRL_Z"
  see '\x1b\[\?25h\x1b\[\?1049l'
  see_status 148
  type_and_see_status bg 0
  redlock-cli acquire -k demo --ttl 1h >/dev/null
  type_line 'sleep 0.5; echo "quiet"ly'
  see 'quietly'
  ask shown 'bg\r\n.*\x1b\[\?1049h'
  assert_equal "$REPLY" never
  type_line fg
  see '\x1b\[\?1049h'
  see '\x1b\[Kdemo +held'
  press "$CTRL_C"
  see_status 130
}

@test "TERM=dumb and a pipe get no escape codes" {
  open_terminal
  type_line 'redlock-cli status --watch 0.1' # the terminal is a dumb one
  see 'no locks\r\nno locks'
  press "$CTRL_C"
  see_status 130
  type_line 'export TERM=xterm; '\
'(redlock-cli status --watch=0.1 & until [ -e seen ]; do sleep 0.1; done; kill $!) | cat'
  see 'no locks\r\nno locks'
  touch seen
  ask shown '\x1b'
  assert_equal "$REPLY" never
}

@test "--prefix selects locks, and cannot be combined with a key" {
  forty_locks
  run -0 redlock-cli status --prefix job3
  assert_line '11 locks: 11 held'
  run -75 redlock-cli status --prefix job3 --exit-code -q
  run -0 redlock-cli status --prefix none --exit-code
  assert_output "no locks"
  run -0 redlock-cli status --prefix job4 --json
  assert_equal "$(jq -r '[.locks[].key] | join(" ")' <<<"$output")" "job4 job40"
  assert_refused 64 "--prefix cannot be combined with keys" \
    redlock-cli status job1 --prefix job
}

@test "--exit-code --slots: whether a slot is free" {
  run -0 redlock-cli status demo --exit-code --slots 2
  hold first --slots 2
  run -75 redlock-cli status demo --exit-code
  run -0 redlock-cli status demo --exit-code --slots 2
  run -75 redlock-cli status demo --exit-code --slots 1
  run -0 redlock-cli status
  assert_line --regexp '^demo +slots .* 1 of 2$'
  hold second --slots 2
  run -75 redlock-cli status demo --exit-code --slots 2
  run -0 redlock-cli status demo --exit-code --slots 3
  run -0 redlock-cli status --slots 3
  assert_line --regexp '^demo +slots .* and 1 more .* 2 of 3$'
  release_hold first
  release_hold second
  hold alone
  run -75 redlock-cli status demo --exit-code --slots 5
  release_hold alone
}

@test "--watch takes a duration, and leaves any other word alone" {
  assert_refused 64 "--watch: must be at least 100ms" redlock-cli status --watch=0
  assert_refused 64 "--watch: " redlock-cli status --watch=soon
  start_background watcher redlock-cli status --watch demo
  wait_for_stdout watcher "demo: free"
  kill -INT "${BACKGROUND_PID[watcher]}"
  wait_background watcher
}
