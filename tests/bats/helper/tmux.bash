# shellcheck shell=bash
# A shell in tmux, which shows its screen as a user sees it.

teardown() {
  [[ ! -S ${TMUX_SOCKET-} ]] || tmux_here kill-server || true
  common_teardown
}

tmux_here() { env -u TMUX tmux -S "$TMUX_SOCKET" -f /dev/null "$@"; }

# open_tmux COLUMNS ROWS: a shell on a terminal of this size; its prompt is `$ `. It has a socket of
# its own, because a shared tmux server that is ending would end the new session, too.
open_tmux() {
  TMUX_SOCKET=$BATS_TEST_TMPDIR/tmux.$((++tmuxes))
  PS1='$ ' tmux_here new-session -d -x "$1" -y "$2" \
    env PS1='$ ' HISTFILE= INPUTRC=/dev/null bash --norc --noprofile -i
  wait_until shows '^\$'
}

type_in_tmux() { tmux_here send-keys -l "$1" && tmux_here send-keys Enter; }
press_in_tmux() { tmux_here send-keys "$1"; }

# screen: its current text, with times, user and host made equal on all machines, and columns
# collapsed; without the pids, which are shown if the names leave room.
screen() {
  tmux_here capture-pane -p | sed -E "s/$(id -un)@$(hostname)/ME/g
    s/[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}/DATE TIME/; s/([0-9]+ +)?[0-9:]{8} [0-9]+[smh]/TIME AGE/g
    s/ PID +SINCE/ SINCE/; s/[0-9]+m? ?[0-9]*[smh] left/LEFT/g; s/ +/ /g; s/ $//"
}

shows() { screen | grep -qE -- "$1"; }
shows_not() { ! shows "$1"; }

# see_on_screen REGEX
see_on_screen() { wait_until shows "$1" || { screen; fail "no line is like $1"; }; }

# see_screen EXPECTED SED-ARGUMENT…: waits until sed turns the whole screen into EXPECTED. Checking
# line by line would depend on whether the rest and the prompt are there yet.
see_screen() {
  local expected=$1
  shift
  wait_until is_screen "$expected" "$@" || assert_equal "$(screen | sed "$@")" "$expected"
}
is_screen() { [[ $(screen | sed "${@:2}") == "$1" ]]; }
