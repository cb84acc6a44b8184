# bash completion for redlock-cli(1). Needs bash 4; uses bash-completion's helpers where they are loaded, and does without them.
# Commands, options and choices come from the program's own help, so there is nothing to keep up here.

# The commands, a line each.
_redlock_cli_commands() {
  "${COMP_WORDS[0]}" --help 2>/dev/null | sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z]*\) .*/\1/p'
}

# The options of a command as its help shows them, `-w,--wait,--timeout DUR`, a line each; without a command those of redlock-cli itself.
_redlock_cli_options() {
  "${COMP_WORDS[0]}" ${1:+"$1"} --help 2>/dev/null | sed -n 's/^  \(-.*\)/\1/p' | sed 's/  .*//'
}

# Offers those of the words that begin with what was typed.
_redlock_cli_offer() {
  mapfile -t COMPREPLY < <(compgen -W "$1" -- "$current")
}

_redlock_cli_offer_files() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -f -- "$current")
}

# Signals as `kill -l` names them; with SIG in front for those who begin so.
_redlock_cli_offer_signals() {
  local names name
  names=$(kill -l)
  words=
  for name in $names; do
    [[ $name == SIG* ]] || continue # its numbers: `1)`
    [[ $current == SIG* ]] || name=${name#SIG}
    words+=" $name"
  done
  _redlock_cli_offer "$words"
}

# The command of `run`, which is word number $1: its own completion where bash-completion knows it.
_redlock_cli_offer_command() {
  if declare -F _comp_command_offset >/dev/null; then
    _comp_command_offset "$1"
  elif declare -F _command_offset >/dev/null; then
    _command_offset "$1"
  elif ((COMP_CWORD == $1)); then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -c -- "$current")
  else
    _redlock_cli_offer_files
  fi
}

# The value of option $2 of command $1; false when it takes none. Its kind is how the help calls it.
_redlock_cli_offer_value() {
  local flags operand
  [[ $2 == -* ]] || return
  while read -r flags operand; do
    [[ ,$flags, == *",$2,"* && -n $operand ]] || continue
    case $operand in
      *'|'*) _redlock_cli_offer "${operand//|/ }" ;;
      FILE | DIR) _redlock_cli_offer_files ;;
      PID) _redlock_cli_offer "$$" ;; # of those that are accepted, this shell
      SIG) _redlock_cli_offer_signals ;;
      URL)
        compopt -o nospace 2>/dev/null
        _redlock_cli_offer 'redis:// rediss:// unix:// sentinel:// sentinels:// cluster:// clusters:// local:'
        ;;
      *) ;; # whatever one likes
    esac
    return 0
  done < <(_redlock_cli_options "$1")
  return 1
}

# The number of the word that begins the command of `run`, behind `--` or where the first word is no option; 0: not there yet.
_redlock_cli_command_word() {
  local flags operand i takes_value=,
  while read -r flags operand; do
    [[ -z $operand ]] || takes_value+=$flags,
  done < <(_redlock_cli_options run)
  for ((i = 2; i < COMP_CWORD; ++i)); do
    case ${COMP_WORDS[i]} in
      --) echo $((i + 1)) && return ;;
      -*)
        # `--option=value` comes in three words, since `=` separates them.
        if [[ ${COMP_WORDS[i + 1]-} == = ]]; then
          i=$((i + 2))
        elif [[ $takes_value == *",${COMP_WORDS[i]},"* ]]; then
          i=$((i + 1))
        fi
        ;;
      *) echo "$i" && return ;;
    esac
  done
  echo 0
}

_redlock_cli() {
  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command='' words i
  COMPREPLY=()

  if ((COMP_CWORD > 1)); then command=${COMP_WORDS[1]}; fi
  if [[ $command == run ]]; then
    i=$(_redlock_cli_command_word)
    if ((i > 0)); then
      _redlock_cli_offer_command "$i"
      return
    fi
  fi

  # `--option=value` comes in three words, since `=` separates them.
  if [[ $current == = ]]; then
    current=
  elif [[ $before == = ]]; then
    before=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  if [[ -n $command ]] && _redlock_cli_offer_value "$command" "$before"; then return; fi

  if [[ $current != -* && ( -z $command || $command == help ) ]]; then
    _redlock_cli_offer "$(_redlock_cli_commands)"
    return
  fi
  words=$(_redlock_cli_options "$command" | sed 's/ .*//; s/,/ /g')
  # The command line of `run` may go on behind `--`.
  [[ $command != run ]] || words+=' --'
  if [[ -n $current && $current != -* ]]; then
    [[ $command != run ]] || _redlock_cli_offer_command "$COMP_CWORD"
    return
  fi
  _redlock_cli_offer "$words"
}

complete -F _redlock_cli redlock-cli
