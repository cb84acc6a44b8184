#!/usr/bin/env bats
# The screen of a wait, as tmux shows it: one line, at every size.
load helper/common
load helper/tmux

setup() { setup_one_server; }

# wait_screen: without variable parts
wait_screen() {
  screen |
    sed -E 's/\([0-9]+s/(N/; s/pid [0-9]+/pid N/; s/, for [0-9.ms]+/, for T/
      s/renewed [0-9]+s ago/renewed T ago/; s/after [0-9.ms]+/after T/; /^$/d'
}

is_on_screen() { [[ $(wait_screen) == "$1" ]]; }
see_screen() { wait_until is_on_screen "$1" || { wait_screen; fail "the screen is not: $1"; }; }

readonly full='waiting for demo (N, 1st in queue): held by ME (run pid N: sh), '\
'"release 4.2", for T, last renewed T ago'

@test "200 by 50: one line, and none when the lock is granted" {
  hold holder --note "release 4.2"
  open_tmux 200 50
  type_in_tmux 'clear; redlock-cli run -k demo -- echo entered'
  see_screen "$full"
  release_hold holder
  see_screen 'redlock-cli: demo: acquired after T
entered
$'
}

@test "80 by 24: the whole text stays above the line, which is cut, and longer when the terminal grows" {
  hold holder --note "release 4.2, which has more to say about itself than fits on a terminal \
of eighty columns"
  open_tmux 80 24
  type_in_tmux 'clear; redlock-cli run -k demo -- echo entered'
  see_on_screen '^waiting for demo \([0-9]+s, 1st in queue\): held by '
  see_on_screen '^redlock-cli: waiting for demo: held by '
  run tmux_here capture-pane -pJ
  assert_equal "$(grep -c '^redlock-cli: waiting for demo: .*fits on a terminal of eighty columns' \
    <<<"$output")" 1
  assert_equal "$(grep -c '^waiting for demo' <<<"$output")" 1
  assert_regex "$(grep '^waiting for demo' <<<"$output")" "\(run pid [0-9]+[):]"
  assert [ "$(grep '^waiting for demo' <<<"$output" | wc -m)" -le 81 ]
  tmux_here resize-window -x 250 -y 24
  see_on_screen '^waiting for demo .*"release 4.2, which has more to say .* of eighty columns", for '
  press_in_tmux C-c
  see_on_screen '^\$$'
  type_in_tmux 'echo "status $?"'
  see_on_screen '^status 130$'
  release_hold holder
}

@test "80 by 24: a superseded waiter reports that in place of the line" {
  hold holder
  open_tmux 80 24
  type_in_tmux 'clear; redlock-cli run -k demo --supersede -- echo entered'
  see_on_screen '^waiting for demo \([0-9]+s, 1st in queue\)'
  start_background new redlock-cli run -k demo --supersede -- true
  see_on_screen '^redlock-cli: demo: superseded by '
  run wait_screen
  refute_output --partial "waiting for demo ("
  release_hold holder
  wait_background new
}
