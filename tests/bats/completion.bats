#!/usr/bin/env bats
# Completion of redlock-cli, in real shells at a real terminal.
load helper/common
load helper/terminal

setup() { setup_one_server; }

# Each shell gets the command `got`, which records the words of a command line, and a completion of
# `greet` with `hello-world`.
open_bash() {
  open_terminal
  type_and_see_status '. /usr/share/bash-completion/bash_completion' 0
  type_and_see_status 'source <(redlock-cli completion bash)' 0
  type_and_see_status \
    'complete -W hello-world greet; got() { printf "<%s>" "$@" >got.new; mv got.new got; }' 0
}

open_zsh() {
  open_terminal zsh -f -i
  type_line 'PS1="[%?]> "'
  type_line 'autoload -U compinit && compinit -u -D && source <(redlock-cli completion zsh)'
  type_line \
    'compdef "compadd hello-world" greet; got() { printf "<%s>" "$@" >got.new; mv got.new got; }'
  type_line 'print rea""dy'
  see ready
}

open_fish() {
  open_terminal fish --private --no-config -i
  type_line 'set -g fish_autosuggestion_enabled 0; redlock-cli completion fish | source'
  type_line 'complete -c greet -f -a hello-world; '\
'function got; printf "<%s>" $argv >got.new; mv got.new got; end'
  type_line 'echo rea""dy'
  see ready
}

# complete_line LINE: sets $completed to the words of the line after Tab was pressed at its end.
complete_line() {
  rm -f "$BATS_TEST_TMPDIR/got"
  # To its beginning, and to its end again.
  press "$1"$'\t\001got \005\r'
  wait_until test -e "$BATS_TEST_TMPDIR/got"
  completed=$(<"$BATS_TEST_TMPDIR/got")
}

completed() {
  complete_line "$1"
  assert_equal "$1: $completed" "$1: $2"
}

# The same for a key. On a busy machine the server may exceed the time limit of completion: then Tab
# is pressed again.
completed_key() {
  local tries
  for ((tries = 0; tries < 20; ++tries)); do
    complete_line "$1"
    [[ $completed != "$2" ]] || return 0
  done
  assert_equal "$1: $completed" "$1: $2"
}

# complete_everything SHELL: the same checks for each shell.
complete_everything() {
  mkdir -p "$BATS_TEST_TMPDIR/a-directory"
  : >"$BATS_TEST_TMPDIR/a-file.toml"
  completed 'redlock-cli sta' '<redlock-cli><status>'
  completed 'redlock-cli run --on-l' '<redlock-cli><run><--on-lost>'
  completed 'redlock-cli run --on-lost te' '<redlock-cli><run><--on-lost><term>'
  completed 'redlock-cli run --descendants=wa' '<redlock-cli><run><--descendants=wait>'
  completed 'redlock-cli run --stop-signal WIN' '<redlock-cli><run><--stop-signal><WINCH>'
  completed 'redlock-cli status --config a-f' '<redlock-cli><status><--config><a-file.toml>'
  completed 'redlock-cli status --config=a-f' '<redlock-cli><status><--config=a-file.toml>'
  completed 'redlock-cli completion f' '<redlock-cli><completion><fish>'
  completed 'redlock-cli help rel' '<redlock-cli><help><release>'
  # The process for --while-pid: this shell.
  complete_line 'redlock-cli acquire --while-pid '
  assert_regex "$completed" '^<redlock-cli><acquire><--while-pid><[0-9]+>$'
  assert_equal "$(ps -o comm= -p "${completed//[^0-9]/}")" "$1"
  # Keys that are locked.
  completed_key 'redlock-cli run -k nigh' '<redlock-cli><run><-k><nightly:backup>'
  completed_key 'redlock-cli run -nknigh' '<redlock-cli><run><-nknightly:backup>'
  completed_key 'redlock-cli status nigh' '<redlock-cli><status><nightly:backup>'
  completed_key 'redlock-cli release two' '<redlock-cli><release><two words>'
  # The command of run.
  completed 'redlock-cli run -k a mktem' '<redlock-cli><run><-k><a><mktemp>'
  completed 'redlock-cli run -k a greet he' '<redlock-cli><run><-k><a><greet><hello-world>'
  completed 'redlock-cli run -S redis://h:1 -nk a -- greet he' \
    '<redlock-cli><run><-S><redis://h:1><-nk><a><--><greet><hello-world>'
  # Nothing matches, and no message appears.
  completed 'redlock-cli run --no-such' '<redlock-cli><run><--no-such>'
  completed 'redlock-cli status -S redis://127.0.0.1:1 nigh' \
    '<redlock-cli><status><-S><redis://127.0.0.1:1><nigh>'
  ask shown '(?i)refused|not found|error'
  assert_equal "$REPLY" never
}

hold_two_keys() {
  run -0 redlock-cli acquire -k nightly:backup -k 'two words' --ttl 10m
}

@test "bash completes commands, options, values, files, keys and the command of run" {
  hold_two_keys
  open_bash
  complete_everything bash
}

@test "zsh completes commands, options, values, files, keys and the command of run" {
  hold_two_keys
  open_zsh
  complete_everything zsh
}

@test "fish completes commands, options, values, files, keys and the command of run" {
  hold_two_keys
  open_fish
  complete_everything fish
}

@test "zsh and fish show what commands and options mean" {
  run -0 fish --no-config -c 'redlock-cli completion fish | source
    complete -C "redlock-cli run --on-lost "
    complete -C "redlock-cli "'
  assert_line kill
  assert_line --partial $'run\trun a command while holding a lock'
  open_zsh
  press $'redlock-cli \t'
  see 'run +-- run a command while holding a lock'
}

@test "suggestions come from the called program: a line for the kind, then one for each" {
  run -0 --separate-stderr redlock-cli completion suggest run --isolate ''
  assert_equal "$output" $'words\t\nnone\ncgroup\npidns'
  run -0 redlock-cli completion suggest run -k a --
  assert_line --index 0 $'words\t'
  run -0 redlock-cli completion suggest run -k a -- sh -c
  assert_equal "$output" $'command\t4'
  run -0 redlock-cli completion suggest run --ttl=
  assert_equal "$output" $'words\t--ttl='
  run -0 redlock-cli completion suggest acquire -S local:/ru
  assert_equal "$output" $'directories\tlocal:'
}

@test "keys are suggested without error messages, and only if the servers answer at once" {
  run -0 --separate-stderr env REDLOCK_CONFIG=/no/such/file redlock-cli completion suggest run -k ''
  assert_equal "$output$stderr" $'words\t'
  run -0 --separate-stderr env -u REDLOCK_SERVER redlock-cli completion suggest run -k ''
  assert_equal "$output$stderr" $'words\t'
  run -0 --separate-stderr redlock-cli completion suggest run -S bogus -S no://server -k ''
  assert_equal "$output$stderr" $'words\t'
}

@test "a key that a terminal or a shell would interpret is not suggested" {
  local key
  for key in $'esc\e[2J' $'line\nbreak' $'c1\u009b2J' $'del\x7f' 'back\slash' plain '"$(reboot)' \
    "'quoted"; do
    redlock-cli acquire -k "$key" --ttl 10m >/dev/null
  done
  # A busy server has too little time for them, and then there are none.
  cd "$BATS_TEST_TMPDIR"
  suggested() {
    redlock-cli completion suggest status '' >suggestions || return
    grep -qx plain suggestions
  }
  wait_until suggested
  # The other lines are the kind and the options with their meanings.
  assert_equal "$(grep -v $'\t' suggestions | sort)" $'back\\slash\nplain'
}

@test "after a leading quote bash inserts nothing that would run" {
  local word
  # shellcheck source=/dev/null
  source <(redlock-cli completion bash)
  for word in '"$(reboot)' "'; reboot" '"`reboot`'; do
    local current=${word:0:1} prefix='' kept=''
    COMPREPLY=()
    _redlock_cli_offer "$word"
    eval "set -- ${COMPREPLY[0]}"
    assert_equal "$*" "$word"
  done
}

# bats test_tags=redis
@test "a server that is silent, or has many keys, does not keep the user waiting for keys" {
  redis 0 eval 'for i = 1, 200000 do redis.call("SET", "other:" .. i, "") end' 0
  run -0 redlock-cli acquire -k nightly --ttl 10m
  # Either all keys in time, or none.
  run -0 --separate-stderr timeout 10 redlock-cli completion suggest status ''
  assert_equal "$stderr" ""
  pause_server 0
  run -0 --separate-stderr timeout 10 redlock-cli completion suggest run -k ''
  assert_equal "$output$stderr" $'words\t'
  resume_server 0
}

@test "completion of an unknown shell: 64" {
  assert_refused 64 "name a shell: bash, zsh or fish" redlock-cli completion
  assert_refused 64 "bash, zsh or fish" redlock-cli completion tcsh
  assert_refused 64 "unexpected argument" redlock-cli completion bash zsh
}
