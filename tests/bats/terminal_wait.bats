#!/usr/bin/env bats
# The output of a wait on a terminal.
load helper/common
load helper/terminal

setup() { setup_one_server; }

hold_with_note() {
  start_background holder redlock-cli run -k demo --note "release 4.2" -- sleep 1000
  wait_for_key 0 demo
}

end_hold() {
  kill "${BACKGROUND_PID[holder]}"
  wait_for_no_key 0 demo
}

@test "one redrawn line with the holder, its note and its age; erased when the wait ends" {
  hold_with_note
  open_terminal
  type_line 'export TERM=vt100'
  see_status 0
  type_line 'redlock-cli run -k demo -- echo entered'
  see \
    '\rwaiting for demo \(\d+s(?:, \d+\w\w in queue)?\): held by '\
'[^\r\n]*"release 4.2", for [0-9.]+m?s, last renewed [0-9]+s ago[^\r\n]*\x1b\[K'
  see \
    '\rwaiting for demo \(\d+s(?:, \d+\w\w in queue)?\): held by '\
'[^\r\n]*"release 4.2", for [0-9.]+s, last renewed [0-9]+s ago[^\r\n]*\x1b\[K'
  end_hold
  see '\r\x1b\[Kredlock-cli: demo: acquired after [0-9.]+m?s\r\nentered'
  see_status 0
  ask shown 'waiting for demo[^\r]*\r\n'
  assert_equal "$REPLY" never
}

@test "acquire also shows it, without disturbing its output" {
  hold_with_note
  open_terminal
  type_line 'export TERM=vt100; token=$(redlock-cli acquire -k demo -t 9s); echo "got ${#token}"'
  see '\rwaiting for demo \(\d+s(?:, \d+\w\w in queue)?\): held by '
  end_hold
  see '\r\x1b\[Kredlock-cli: demo: acquired after [0-9.]+m?s\r\ngot 32'
}

@test "it is redrawn every second, however rarely the lock is polled, and after fg" {
  hold_with_note
  open_terminal
  type_line 'export TERM=vt100'
  see_status 0
  local before second
  type_line 'redlock-cli run -k demo -- echo entered'
  see '\rwaiting for demo \((\d+)s, 1st in queue\)'
  before=$(scripts_run 0)
  for second in 1 2 3; do
    see \
      '\rwaiting for demo \(\d+s, 1st in queue\): held by '\
'[^\r\n]*, for [0-9.]+m?s, last renewed [0-9]+s ago[^\r\n]*\x1b\[K'
  done
  press "$CTRL_Z"
  see_status 148
  type_line fg
  for second in 1 2; do see '\rwaiting for demo \(\d+s, 1st in queue\): held by '; done
  # Redrawing does not poll: nine redraws would otherwise be nine polls. (The holder also renews.)
  assert_in_range "$(scripts_run 0)" "$before" $((before + 4))
  press "$CTRL_C"
  see_status 130
}

@test "a wait of less than a second shows no line" {
  redis 0 set demo x px 300
  open_terminal
  type_line 'export TERM=vt100'
  see_status 0
  redis 0 set demo x px 300
  type_line 'redlock-cli run --status-fd 8 -k demo -- echo entered 8>report'
  see '\nentered'
  see_status 0
  # On a busy machine it may have taken longer, and has its line.
  if (($(jq .waited_ms report) < 1000)); then
    ask shown 'waiting'
    assert_equal "$REPLY" never
  fi
}

@test "the line fits on the terminal" {
  hold_with_note
  open_terminal
  ask resize 24 40
  type_line 'export TERM=vt100'
  see_status 0
  type_line 'redlock-cli run -k demo -- echo entered'
  see '\r\x1b\[Kredlock-cli: waiting for demo: held by [^\r]*"release 4.2"[^\r]*\r\n'
  see '\rwaiting for demo \(\ds, [^\r]{,20}\.\.\.\x1b\[K'
  press "$CTRL_C"
  see_status 130
}

@test "a terminal that cannot draw gets plain lines, one at the start" {
  hold_with_note
  open_terminal
  type_line 'export TERM=dumb'
  see_status 0
  type_line 'redlock-cli run -k demo -- echo entered'
  see 'redlock-cli: waiting for demo: held by [^\r]*\r\n'
  end_hold
  see '^entered'
  see_status 0
}

@test "nothing is drawn while the job is stopped or in the background" {
  # A foreign client notifies no waiter, so we poll often.
  redis 0 set demo x
  open_terminal
  type_line 'export TERM=vt100'
  see_status 0
  type_line 'redlock-cli run -k demo -- echo entered'
  see '\rwaiting for demo \(\d+s(?:, \d+\w\w in queue)?\): held by '
  press "$CTRL_Z"
  see_status 148
  # Enough polls for more lines, if there were any.
  local before
  before=$(scripts_run 0)
  wait_until has_run_scripts 0 $((before + 15))
  type_line 'echo "un""disturbed"'
  see 'undisturbed\r\n\[0\]> '
  ask shown '\[148\]> [^\n]*waiting'
  assert_equal "$REPLY" never
  type_line fg
  see '\rwaiting for demo \(\d+s(?:, \d+\w\w in queue)?\): held by '
  press "$CTRL_C"
  see_status 130
}
