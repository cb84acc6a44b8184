# shellcheck shell=bash
# A shell in tmux, which shows its screen as a user sees it.

teardown() {
  [[ ! -S ${TMUX_SOCKET-} ]] || tmux_here kill-server || true
  common_teardown
}

tmux_here() { env -u TMUX tmux -S "$TMUX_SOCKET" -f /dev/null "$@"; }

# open_tmux COLUMNS ROWS: a shell on a terminal of this size; its prompt is `$ `. On a socket of its
# own: at that of a server that is ending a new one would end, too.
open_tmux() {
  TMUX_SOCKET=$BATS_TEST_TMPDIR/tmux.$((++tmuxes))
  PS1='$ ' tmux_here new-session -d -x "$1" -y "$2" \
    env PS1='$ ' HISTFILE= INPUTRC=/dev/null bash --norc --noprofile -i
  wait_until shows '^\$'
}

type_in_tmux() { tmux_here send-keys -l "$1" && tmux_here send-keys Enter; }
press_in_tmux() { tmux_here send-keys "$1"; }

# screen: what is on it now, times and who we are made equal on all machines, columns pushed
# together; without the pids, which show where the names leave them room.
screen() {
  tmux_here capture-pane -p | sed -E "s/$(id -un)@$(hostname)/ME/g
    s/[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}/DATE TIME/; s/([0-9]+ +)?[0-9:]{8} [0-9]+[smh]/TIME AGE/g
    s/ PID +SINCE/ SINCE/; s/[0-9]+m? ?[0-9]*[smh] left/LEFT/g; s/ +/ /g; s/ $//"
}

shows() { screen | grep -qE -- "$1"; }
shows_not() { ! shows "$1"; }

# see_on_screen REGEX
see_on_screen() { wait_until shows "$1" || { screen; fail "no line is like $1"; }; }

# see_screen EXPECTED SED-ARGUMENT…: what sed makes of the screen. Line by line it would be a chance
# whether the rest of it, and the shell's prompt, are there yet.
see_screen() {
  local expected=$1
  shift
  wait_until is_screen "$expected" "$@" || assert_equal "$(screen | sed "$@")" "$expected"
}
is_screen() { [[ $(screen | sed "${@:2}") == "$1" ]]; }
