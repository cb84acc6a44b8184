# shellcheck shell=bash
# A user at a real terminal.
#
# The prompt of its shell is `[STATUS]> `, with the exit status of the last command. Typed text is
# echoed on the screen: never wait for words that were typed.

readonly CTRL_C=$'\003' CTRL_D=$'\004' CTRL_Z=$'\032' CTRL_BACKSLASH=$'\034'

# open_terminal [CMD…]: an interactive bash with job control, or CMD, on a terminal of its own.
open_terminal() {
  local own_shell=$#
  (($#)) || set -- bash --norc --noprofile -i
  mkfifo "$BATS_TEST_TMPDIR/ask" "$BATS_TEST_TMPDIR/answer"
  exec {ASK}<>"$BATS_TEST_TMPDIR/ask" {ANSWER}<>"$BATS_TEST_TMPDIR/answer"
  cd "$BATS_TEST_TMPDIR" || return
  start_background terminal \
    /usr/bin/python3 -u "$BATS_TEST_DIRNAME/helper/terminal.py" ask answer "$@"
  ((own_shell)) || see_status 0
}

# Shows the terminal of a failed test before the usual teardown.
teardown() { terminal_teardown; }
terminal_teardown() {
  local screen=${BACKGROUND_FILES[terminal]-}
  common_teardown
  [[ -z $screen ]] || sed 's/^/the terminal showed: /' "$screen.stderr"
}

# ask VERB [TEXT]: see terminal.py; the answer is then in REPLY.
ask() {
  printf '%s\0' "$*" >&"$ASK"
  # shellcheck disable=SC2229
  if ! IFS= read -r -t $((2 * WAIT_LIMIT)) -u "$ANSWER" REPLY; then
    cat "$(background_stderr terminal)" >&2
    fail "the terminal does not answer: $*"
  fi
  [[ $REPLY == ok* ]] || fail "$* -- ${REPLY#no }"
  REPLY=${REPLY#ok }
}

press() { ask press "$1"; }
type_line() { press "$1"$'\r'; }

# see REGEX: waits until the screen shows it after the text that was seen last.
see() { ask see "$1"; }

# see_status STATUS: waits for the prompt, which must show this status.
see_status() {
  see '\[\d+\]> '
  [[ $REPLY == *"[$1]> "* ]] || fail "the prompt shows $REPLY, not $1"
}

# type_and_see_status LINE STATUS
type_and_see_status() {
  type_line "$1"
  see_status "$2"
}

# All processes that were started at the terminal are gone.
nothing_left() {
  ask left
  [[ -z $REPLY ]]
}

# --- A command that counts its signals ---

# counter SIGNAL…: the command line of a program that records each of these signals and every USR1
# until end_counter, and then exits with 23.
counter() {
  make_counter
  echo "./counter $*"
}
make_counter() {
  [[ -e $BATS_TEST_TMPDIR/counter ]] || executable counter >/dev/null <<'END_OF_COUNTER'
#!/usr/bin/python3
import os, signal, sys
here = os.path.dirname(os.path.realpath(sys.argv[0]))
wanted = {getattr(signal, "SIG" + name) for name in sys.argv[1:] + ["USR1", "USR2"]}
signal.pthread_sigmask(signal.SIG_BLOCK, wanted)
with open(here + "/counting.new", "w") as file:
    file.write(f"{os.getpid()} {os.environ['REDLOCK_TOKEN']}\n")
os.rename(here + "/counting.new", here + "/counting")
heard = open(here + "/heard", "a", buffering=1)
while (number := signal.sigwaitinfo(wanted).si_signo) != signal.SIGUSR2:
    heard.write(signal.Signals(number).name[3:] + "\n")
sys.exit(23)
END_OF_COUNTER
}

# One server; PROGRAM, the program as a file of its own; the counter; and ./own_group WORD…, which
# runs the words in a process group of their own.
setup_signal_test() {
  setup_one_server
  allow_late_answers
  # A private copy, so that a search for its name or its file finds no other process, not even
  # another test's. A name in /proc has 15 bytes.
  PROGRAM=$BATS_TEST_TMPDIR/lock-of-$$
  cp "$(type -P redlock-cli)" "$PROGRAM"
  make_counter
  executable own_group >/dev/null <<'END'
#!/usr/bin/python3
# As timeout(1) does.
import os, sys
os.setpgid(0, 0)
os.execv(sys.argv[1], sys.argv[1:])
END
}

# Waits until it runs, and sets COUNTER to its pid and TOKEN to the token of its lock.
wait_for_counter() {
  : >>"$BATS_TEST_TMPDIR/heard"
  wait_until test -e "$BATS_TEST_TMPDIR/counting"
  read -r COUNTER TOKEN <"$BATS_TEST_TMPDIR/counting"
}

end_counter() { kill -USR2 "$COUNTER"; }

# assert_heard FRONT SIGNAL…: it received exactly these signals since its start, in any order. First
# passes a signal of its own through FRONT, which arrives after all that are in flight.
assert_heard() {
  local front=$1
  shift
  local wanted="$*"
  wanted=$(tr ' ' '\n' <<<"$wanted" | sort | paste -sd ' ')
  # Signals that were sent are waited for; a missing one would be waited for in vain.
  wait_until heard_at_least "$@"
  local fences
  fences=$(grep -cx USR1 "$BATS_TEST_TMPDIR/heard" || true)
  kill -USR1 "$front"
  wait_until heard_fences $((fences + 1))
  assert_equal "$(grep -vx USR1 "$BATS_TEST_TMPDIR/heard" | sort | paste -sd ' ')" "$wanted"
}

heard_at_least() { (($(grep -cvx USR1 "$BATS_TEST_TMPDIR/heard") >= $#)); }
heard_fences() { (($(grep -cx USR1 "$BATS_TEST_TMPDIR/heard") >= $1)); }

# --- Processes ---

# The state of a process: R, S, D, T (stopped), Z; empty when it is gone.
state_of() { sed 's/.*) \(.\).*/\1/' "/proc/$1/stat" 2>/dev/null; }

is_stopped() { [[ $(state_of "$1") == T ]]; }
goes_on() { [[ $(state_of "$1") =~ [RSD] ]]; }
is_dead() { [[ $(state_of "$1") =~ ^Z?$ ]]; }

# The process group that has the terminal, and with it the pid of the job's first process.
foreground() {
  ask foreground
  echo "$REPLY"
}
