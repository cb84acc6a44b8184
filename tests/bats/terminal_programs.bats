#!/usr/bin/env bats
# Programs use the terminal as they do without redlock-cli.
load helper/common
load helper/terminal

setup() {
  setup_one_server
  open_terminal
}

# The terminal is restored: it echoes, and edits lines.
assert_sane_terminal() {
  type_line 'stty -a | grep -ow -- "-\?icanon\|-\?echo" | paste -sd" "'
  see '^icanon echo'
  see_status 0
}

@test "messages to a terminal in raw mode begin in the first column" {
  type_line 'stty raw -echo; redlock-cli run -v -k demo -- true; stty sane'
  see 'acquired after [^\r\n]*\r\nredlock-cli: demo: released after [^\r\n]*\r\n'
  see_status 0
}

# A full-screen program that shows the key that was pressed; `q` ends it. While it draws, curses
# ignores signals of the terminal: what was seen on the screen is no sign that it is done. The file
# drawn-N is, when it has drawn for the Nth time.
full_screen_program() {
  executable full-screen >/dev/null <<'END_OF_PROGRAM'
#!/usr/bin/python3
import curses
def key_pressed(screen):
    while True:
        try:
            return screen.getkey()
        except curses.error:  # nothing within the timeout
            pass
def show(screen):
    screen.timeout(50)  # a change of the window just before it reads is seen then
    text, drawn = "press something", 0
    while True:
        screen.addstr(drawn, 0, text)
        screen.refresh()
        drawn += 1
        open("drawn-%d" % drawn, "w").close()
        key = key_pressed(screen)
        if key == "q":
            return
        text = "size %d %d" % screen.getmaxyx() if key == "KEY_RESIZE" else "it was " + key
curses.wrapper(show)
END_OF_PROGRAM
}

@test "into a pager: it shows all and takes its keys; the lock is free when the command has ended" {
  type_line "redlock-cli run -k demo -- printf 'line %s\n' 1 2 3 | TERM=vt100 less"
  see 'line 3'
  see 'END'
  wait_for_no_key 0 demo
  press q
  see_status 0
  assert_sane_terminal
}

@test "a pager as the command, behind a pipe" {
  type_line "printf 'line %s\n' 1 2 3 | TERM=vt100 redlock-cli run -k demo -- less"
  see 'line 3'
  see 'END'
  assert_equal "$(redis 0 exists demo)" 1
  press q
  see_status 0
  wait_for_no_key 0 demo
  assert_sane_terminal
}

@test "a full-screen program reads keys, and is notified of a resized window" {
  full_screen_program
  type_line "TERM=vt100 redlock-cli run -k demo -- ./full-screen"
  see 'press something'
  press x
  see 'it was x'
  wait_until test -e drawn-2
  ask resize 30 100
  see 'size 30 100'
  press q
  see_status 0
  assert_sane_terminal
}

# A program that tidies up before it stops, as full-screen programs do, and takes its time.
slow_to_stop() {
  executable slow-to-stop >/dev/null <<'END_OF_PROGRAM'
#!/usr/bin/python3
import os, signal, time
def tidy_up(*_):
    open("tidying-up", "w")
    while not os.path.exists("tidied"):
        time.sleep(0.02)
    signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTSTP)
signal.signal(signal.SIGTSTP, tidy_up)
signal.signal(signal.SIGUSR1, lambda *_: open("heard", "w"))
print("ready", flush=True)
signal.pause()
END_OF_PROGRAM
}

@test "at ^Z the shell gets the terminal back only when the command has stopped" {
  slow_to_stop
  type_line "redlock-cli run -k demo -- ./slow-to-stop"
  see '^ready'
  local front
  front=$(foreground)
  press "$CTRL_Z"
  wait_until test -e tidying-up
  # A stopped process passes no signals on.
  kill -USR1 "$front"
  wait_until test -e heard
  ask shown Stopped
  assert_equal "$REPLY" never
  touch tidied
  see_status 148
}

@test "a full-screen program is stopped and continued" {
  full_screen_program
  type_line "TERM=vt100 redlock-cli run -k demo -- ./full-screen"
  see 'press something'
  wait_until test -e drawn-1
  press "$CTRL_Z"
  see_status 148
  type_and_see_status '(exit 7)' 7
  assert_equal "$(redis 0 exists demo)" 1
  type_line fg
  # Drawn again, so the terminal is the program's again: what was typed before would be lost.
  see 'press something'
  press x
  see 'it was x'
  press q
  see_status 0
  assert_sane_terminal
}

@test "a password prompt of bash does not echo" {
  type_line \
    "redlock-cli run -k demo -- \
bash -c 'read -rsp \"Pass\"\"word: \" word; echo; echo \"length \${#word}\"'"
  see 'Password: '
  press $'sesame\r'
  see 'length 6'
  see_status 0
  ask shown sesame
  assert_equal "$REPLY" never
  assert_sane_terminal
}

@test "a password prompt of Python does not echo, whatever stdin and stdout are" {
  executable ask-password >/dev/null \
    <<<$'#!/usr/bin/python3\nimport getpass\nopen("length", "w").write(str(len(getpass.getpass())))'
  type_line "redlock-cli run -k demo -- ./ask-password </dev/null | cat"
  see 'Password: '
  press $'sesame\r'
  see_status 0
  assert_equal "$(<length)" 6
  ask shown sesame
  assert_equal "$REPLY" never
  assert_sane_terminal
}

@test "^C at a password prompt: 130, and the terminal echoes again" {
  type_line "redlock-cli run -k demo -- bash -c 'read -rsp \"Pass\"\"word: \" word'"
  see 'Password: '
  press "$CTRL_C"
  see_status 130
  wait_for_no_key 0 demo
  assert_sane_terminal
}
