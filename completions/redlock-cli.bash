# bash completion for redlock-cli(1). Needs bash 4; uses bash-completion's helpers where they are loaded, and does without them.
# Commands, options and choices come from the program's own help, so there is nothing to keep up here.

# Readline separates words at `:` and `=` too. `typed` gets them as the shell will see them, up to
# the one being typed, and `starts` where each of them begins in COMP_WORDS.
_redlock_cli_rejoin() {
  local i n=0 word before='' line=${COMP_LINE-} is_apart
  typed=() starts=()
  for ((i = 0; i <= COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    is_apart=
    if ((i == 0)) || [[ $line == [[:blank:]]* ]]; then is_apart=1; fi
    [[ $word =~ ^[:=]+$ || $before =~ ^[:=]+$ ]] || is_apart=1
    if [[ $is_apart ]]; then
      starts[n]=$i
      typed[n++]=$word
    else
      typed[n - 1]+=$word
    fi
    line=${line#"${line%%[![:blank:]]*}"}
    line=${line#"$word"}
    before=$word
  done
}

# The commands, a line each.
_redlock_cli_commands() {
  "${COMP_WORDS[0]}" --help 2>/dev/null | sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z]*\) .*/\1/p'
}

# The options of a command as its help shows them, `-w,--wait,--timeout DUR`, a line each; without a command those of redlock-cli itself.
_redlock_cli_options() {
  "${COMP_WORDS[0]}" ${1:+"$1"} --help 2>/dev/null | sed -n 's/^  \(-.*\)/\1/p' | sed 's/  .*//'
}

# Offers those of the words that begin with what was typed, without what readline leaves alone.
_redlock_cli_offer() {
  mapfile -t COMPREPLY < <(compgen -W "$1" -- "$current")
  COMPREPLY=("${COMPREPLY[@]#"$kept"}")
}

_redlock_cli_offer_files() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -f -- "$current")
  COMPREPLY=("${COMPREPLY[@]#"$kept"}")
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
    _comp_command_offset "${starts[$1]}"
  elif declare -F _command_offset >/dev/null; then
    _command_offset "${starts[$1]}"
  elif ((${#typed[@]} - 1 == $1)); then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -c -- "$current")
    COMPREPLY=("${COMPREPLY[@]#"$kept"}")
  else
    _redlock_cli_offer_files
  fi
}

# The option of command $1 whose value stands behind word $2, if any: `-k` behind `-nk`, but none
# behind `-kn`.
_redlock_cli_awaits_value() {
  local flags operand takes_value=, i
  [[ $2 == -?* && $2 != -- && $2 != *=* ]] || return
  while read -r flags operand; do
    [[ -z $operand ]] || takes_value+=$flags,
  done < <(_redlock_cli_options "$1")
  if [[ $2 == --* ]]; then
    [[ $takes_value != *",$2,"* ]] || echo "$2"
    return
  fi
  for ((i = 1; i < ${#2}; ++i)); do
    [[ $takes_value == *",-${2:i:1},"* ]] || continue
    ((i + 1 < ${#2})) || echo "-${2:i:1}"
    return
  done
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
  local i
  for ((i = 2; i < ${#typed[@]} - 1; ++i)); do
    case ${typed[i]} in
      --) echo $((i + 1)) && return ;;
      -?*) [[ -z $(_redlock_cli_awaits_value run "${typed[i]}") ]] || i=$((i + 1)) ;;
      *) echo "$i" && return ;;
    esac
  done
  echo 0
}

_redlock_cli() {
  local typed starts i current kept option='' command='' words
  COMPREPLY=()
  _redlock_cli_rejoin
  i=$((${#typed[@]} - 1))
  current=${typed[i]}
  # What readline replaces begins behind the last `:` or `=`.
  kept=$current
  [[ ${COMP_WORDS[COMP_CWORD]} =~ ^[:=]+$ ]] || kept=${current%"${COMP_WORDS[COMP_CWORD]}"}

  if ((i > 1)); then
    command=${typed[1]}
    option=$(_redlock_cli_awaits_value "$command" "${typed[i - 1]}")
  fi
  if [[ $command == run ]]; then
    i=$(_redlock_cli_command_word)
    if ((i > 0 && i < ${#typed[@]})); then
      _redlock_cli_offer_command "$i"
      return
    fi
  fi

  if [[ -z $option && $current == --?*=* ]]; then
    option=${current%%=*}
    current=${current#*=}
    kept=${kept#"$option="}
  fi
  if [[ -n $command ]] && _redlock_cli_offer_value "$command" "$option"; then return; fi

  if [[ $current != -* && ( -z $command || $command == help ) ]]; then
    _redlock_cli_offer "$(_redlock_cli_commands)"
    return
  fi
  words=$(_redlock_cli_options "$command" | sed 's/ .*//; s/,/ /g')
  # The command line of `run` may go on behind `--`.
  [[ $command != run ]] || words+=' --'
  if [[ -n $current && $current != -* ]]; then
    [[ $command != run ]] || _redlock_cli_offer_command $((${#typed[@]} - 1))
    return
  fi
  _redlock_cli_offer "$words"
}

complete -F _redlock_cli redlock-cli
