# bash completion for redlock-cli(1). Needs bash 4; uses bash-completion's helpers where they are loaded, and does without them.
# tests/docs.sh compares the options with those of `redlock-cli COMMAND --help`.

# Sets `words`: the options of a command, all spellings; without a command those of redlock-cli itself.
_redlock_cli_options() {
  local every='-k --key -S --server --server-timeout --user --password-file --cacert --cacertdir --cert --cert-key --sni --insecure
    --config --json -q --quiet -v --verbose -h --help'
  local takes_lock='-n --nonblock --nb -w --wait --timeout --unavailable-wait -t --ttl -E --conflict-exit-code
    -s --shared -x -e --exclusive --slots --note --retry-delay --grace --stop-signal --on-lost --restart-guard --replicas'
  case $1 in
    run) words="$every $takes_lock -c --command --descendants --min-hold --isolate --status-fd" ;;
    acquire) words="$every $takes_lock --while-pid --export --token-file" ;;
    extend) words="$every -t --ttl --token-file --restart-guard --replicas" ;;
    release) words="$every --token-file --force --if-fence --reason" ;;
    status) words="$every --exit-code --watch" ;;
    doctor) words="$every --restart-guard --replicas --settings" ;;
    *) words='-h --help -V --version' ;;
  esac
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

# The command behind `--`, which is word number $1: its own completion where bash-completion knows it.
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

# The value of an option; false when it takes none, or there is nothing to offer for it.
_redlock_cli_offer_value() {
  case $1 in
    --on-lost) _redlock_cli_offer 'kill term warn' ;;
    --descendants) _redlock_cli_offer 'leave wait kill' ;;
    --while-pid) _redlock_cli_offer "$$" ;; # of those that are accepted, this shell
    --isolate) _redlock_cli_offer 'none cgroup pidns' ;;
    --stop-signal) _redlock_cli_offer_signals ;;
    --config | --password-file | --token-file | --cacert | --cacertdir | --cert | --cert-key) _redlock_cli_offer_files ;;
    -S | --server)
      compopt -o nospace 2>/dev/null
      _redlock_cli_offer 'redis:// rediss:// unix:// sentinel:// sentinels:// cluster:// clusters:// local:'
      ;;
    # Whatever one likes.
    -k | --key | -w | --wait | --timeout | --unavailable-wait | -t | --ttl | -E | --conflict-exit-code | --note | --retry-delay | \
      -c | --command | --grace | --min-hold | --status-fd | --if-fence | --reason | --slots | --restart-guard | --replicas | --server-timeout | --user | --sni) ;;
    *) return 1 ;;
  esac
}

_redlock_cli() {
  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command='' words i
  COMPREPLY=()

  for ((i = 1; i < COMP_CWORD; ++i)); do
    # The first `--` ends the options, whatever stands before it.
    if [[ ${COMP_WORDS[i]} == -- ]]; then
      [[ $command != run ]] || _redlock_cli_offer_command $((i + 1))
      return
    fi
    [[ -n $command || ${COMP_WORDS[i]} == -* ]] || command=${COMP_WORDS[i]}
  done

  # `--option=value` comes in three words, since `=` separates them.
  if [[ $current == = ]]; then
    current=
  elif [[ $before == = ]]; then
    before=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  if [[ -n $command ]] && _redlock_cli_offer_value "$before"; then return; fi

  if [[ -z $command && $current != -* ]]; then
    _redlock_cli_offer 'run acquire extend release status doctor'
    return
  fi
  _redlock_cli_options "$command"
  # The command line of `run` goes on behind `--`.
  [[ $command != run ]] || words+=' --'
  [[ -n $current && $current != -* ]] || _redlock_cli_offer "$words"
}

complete -F _redlock_cli redlock-cli
