# bash completion for redlock-cli(1). Needs bash 4; uses bash-completion's helpers where they are
# loaded, and does without them.
# What may be typed is asked of the program (`redlock-cli completion suggest WORD...`), so there is
# nothing to keep up here.

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

# Offers those of the words that begin with what was typed. `prefix` stands before each of them;
# readline leaves alone what is `kept`.
_redlock_cli_offer() {
  local word
  for word; do
    word=$prefix$word
    [[ $word == "$current"* ]] || continue
    # Always: a key is what another client chose, and could be run.
    [[ $word != *[!a-zA-Z0-9_./:=,@%+-]* ]] || printf -v word %q "$word"
    COMPREPLY+=("${word#"$kept"}")
  done
}

# The names of files, as `compgen $1` knows them.
_redlock_cli_offer_files() {
  local names
  compopt -o filenames 2>/dev/null
  mapfile -t names < <(compgen "$1" -- "${current#"$prefix"}")
  COMPREPLY=("${names[@]/#/"$prefix"}")
  COMPREPLY=("${COMPREPLY[@]#"$kept"}")
}

# The command of `run`, which is word number $1: its own completion where bash-completion knows it.
_redlock_cli_offer_command() {
  if declare -F _comp_command_offset >/dev/null; then
    _comp_command_offset "${starts[$1]}"
  elif declare -F _command_offset >/dev/null; then
    _command_offset "${starts[$1]}"
  elif ((${#typed[@]} - 1 == $1)); then
    _redlock_cli_offer_files -c
  else
    _redlock_cli_offer_files -f
  fi
}

_redlock_cli() {
  local typed starts current kept kind prefix words first
  COMPREPLY=()
  _redlock_cli_rejoin
  current=${typed[${#typed[@]} - 1]}
  # What readline replaces begins behind the last `:` or `=`.
  kept=$current
  [[ ${COMP_WORDS[COMP_CWORD]} =~ ^[:=]+$ ]] || kept=${current%"${COMP_WORDS[COMP_CWORD]}"}

  {
    IFS=$'\t' read -r kind prefix
    mapfile -t words
  } < <("${COMP_WORDS[0]}" completion suggest "${typed[@]:1}" </dev/null 2>/dev/null)
  words=("${words[@]%%$'\t'*}")
  case $kind in
    words) _redlock_cli_offer "${words[@]}" ;;
    beginnings)
      compopt -o nospace 2>/dev/null
      _redlock_cli_offer "${words[@]}"
      ;;
    files) _redlock_cli_offer_files -f ;;
    directories) _redlock_cli_offer_files -d ;;
    pid) _redlock_cli_offer "$$" ;; # of those that are accepted, this shell
    command)
      first=$((prefix + 1)) prefix=
      _redlock_cli_offer_command "$first"
      ;;
  esac
}

complete -F _redlock_cli redlock-cli
