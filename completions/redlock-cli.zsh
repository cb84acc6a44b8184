#compdef redlock-cli
# zsh completion for redlock-cli(1): a file `_redlock-cli` in $fpath, or read by `eval` behind
# compinit.
# What may be typed is asked of the program (`redlock-cli completion suggest WORD...`), so there is
# nothing to keep up here.

_redlock_cli() {
  emulate -L zsh -o extended_glob
  local kind prefix line
  local -a answer typed suggestions
  # As the program will see them, up to the cursor; the one being typed without its quotes.
  typed=("${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}")
  answer=("${(@f)$(_call_program suggestions \
    ${(q)words[1]} completion suggest ${(q)typed[@]} 2>/dev/null)}")
  kind=${answer[1]%%$'\t'*} prefix=${answer[1]#*$'\t'}

  if [[ $kind == command ]]; then
    # As if the command were typed alone, with its own completion.
    shift $((prefix + 1)) words
    ((CURRENT -= prefix + 1))
    _normal
    return
  fi
  compset -P "${(b)prefix}"
  case $kind in
    files) _files ;;
    directories) _files -/ ;;
    pid) compadd -- $$ ;; # of those that are accepted, this shell
    words | beginnings)
      for line in "${(@)answer[2,-1]}"; do
        [[ -n $line ]] || continue
        # A colon separates a word from what it means.
        suggestions+=("${${line%%$'\t'*}//:/\\:}${${(M)line%$'\t'*}/$'\t'/:}")
      done
      if [[ $kind == beginnings ]]; then
        _describe -V redlock-cli suggestions -S ''
      else
        _describe -V redlock-cli suggestions
      fi
      ;;
  esac
}

# As a file of $fpath this is the function's body, else it defines one.
if [[ $funcstack[1] == _redlock-cli ]]; then
  _redlock_cli "$@"
else
  compdef _redlock_cli redlock-cli
fi
