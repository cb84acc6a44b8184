#!/usr/bin/env bash
# Fails when the documents and the program say different things: the options of each command (man page, completion), their
# defaults, the exit codes (man page, README), the rights that the scripts need, the version; when the man page is not clean, or a link leads nowhere.
# usage: REDLOCK_CLI=build/dev/src/redlock-cli tests/docs.sh [ROOT]   (ROOT: the repository, or a copy of it)
set -euo pipefail
export LC_ALL=C.UTF-8

root=${1:-$(dirname "${BASH_SOURCE[0]}")/..}
cli=$(realpath "${REDLOCK_CLI:?the program to compare with}")
cd "$root"
for variable in "${!REDLOCK_@}"; do unset "$variable"; done

problems=0
problem() {
  echo "docs: $*" >&2
  problems=$((problems + 1))
}

# same WHAT EXPECTED FOUND: two lists, a word or a line each, in any order. Says what is missing and what is too much.
same() {
  local what=$1 missing extra
  missing=$(comm -23 <(sort -u <<<"$2") <(sort -u <<<"$3"))
  extra=$(comm -13 <(sort -u <<<"$2") <(sort -u <<<"$3"))
  [[ -n $2 ]] || problem "$what: nothing to compare with"
  [[ -z $missing ]] || problem "$what: missing: ${missing//$'\n'/; }"
  [[ -z $extra ]] || problem "$what: unknown to the program: ${extra//$'\n'/; }"
}

command -v mandoc >/dev/null || {
  echo "docs: mandoc is not installed" >&2
  exit 1
}

# --- What the program says. ---

# Its commands, a line each.
commands=$("$cli" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z]*\) .*/\1/p')

# help_options [COMMAND]: its options as `--help` shows them, `-w,--wait,--timeout DUR`, a line each.
help_options() { "$cli" "$@" --help | sed -n 's/^  \(-.*\)/\1/p' | sed 's/  .*//'; }

# help_defaults COMMAND: `--name DEFAULT`, a line each.
help_defaults() {
  "$cli" "$1" --help | awk '
    function end() {
      if (match(text, /\(default: .*\)$/)) print name, substr(text, RSTART + 10, RLENGTH - 11)
      text = ""
    }
    /^  -/ { end(); match($0, /--[a-z-]+/); name = substr($0, RSTART, RLENGTH); text = $0; next }
    /^      +/ && text != "" { sub(/^ +/, ""); text = text " " $0; next }
    { end() }'
}

# `CODE<tab>MEANING`, a line each.
help_exit_codes() {
  "$cli" --help | sed -n '/^Exit codes:/,/^$/p' | sed -E ':join; N; $!bjoin; s/\n {12}/ /g' |
    sed -En 's/^ +([0-9]+(, [0-9]+)*)  +(.*)/\1\t\3/p'
}

# --- What the man page says, as it is shown, a paragraph a line. ---

page=man/redlock-cli.1
lint=$(mandoc -Tlint -W warning "$page" 2>&1) || true
[[ -z $lint ]] || problem "$page: $lint"
# Overstruck letters are how a terminal shows bold and underlined ones.
shown=$(mandoc -Tascii -Owidth=900 "$page" 2>/dev/null | sed 's/.\x08//g')

# Quotes within parentheses on one line of a macro are shown as one inside the other.
# shellcheck disable=SC1112  # these are the quotes that are looked for
broken_quotes=$(mandoc -Tutf8 -Owidth=900 "$page" 2>/dev/null | sed 's/.\x08//g' | grep -oE '‘[^’]*‘[^’]*|’’' || true)
[[ -z $broken_quotes ]] || problem "$page: quotes within quotes: ${broken_quotes//$'\n'/; }"

# section TITLE: its lines.
section() { awk -v title="$1" '/^[A-Z]/ { inside = $0 == title; next } inside' <<<"$shown"; }

# man_options [COMMAND]: the options in the subsections of OPTIONS whose title names it.
man_options() {
  section OPTIONS | awk -v command="${1-}" '
    /^   [A-Z]/ {
      words = " " $0 " "
      gsub(/,/, " ", words)
      if (command == "") mine = words ~ / without a command /
      else mine = words ~ / every command / || index(words, " " command " ")
    }
    mine && /^     -/ { sub(/^ +/, ""); sub(/  .*/, ""); gsub(/, /, ","); print }'
}

# man_defaults: `--name TEXT` for each option, with all that is said of it.
man_defaults() {
  section OPTIONS | awk '
    /^     -/ { match($0, /--[a-z-]+/); name = substr($0, RSTART, RLENGTH); next }
    /^   [A-Z]/ { name = "" }
    name != "" && NF { sub(/^ +/, ""); print name, $0 }'
}

man_exit_codes() { section 'EXIT STATUS' | sed -En 's/^ {5}([0-9]+(, [0-9]+)*|128\+n) +(.*)/\1\t\3/p'; }

# --- What the completion offers. ---

completion=completions/redlock-cli.bash
# in_completion SCRIPT WORD…: a bash that has loaded the completion, and a function `offered` that answers for a command line
# of these words, the last one being typed, with a line each.
in_completion() {
  local script=$1
  shift
  # shellcheck disable=SC2016  # for the inner shell
  PATH=$(dirname "$cli"):$PATH env -u BASH_ENV bash --norc --noprofile -c '
    . "$0" || exit
    offered() {
      COMP_WORDS=(redlock-cli "$@") COMP_CWORD=$#
      _redlock_cli redlock-cli "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}" 2>/dev/null
      printf "%s\n" "${COMPREPLY[@]}"
    }
    '"$script" "./$completion" "$@"
}
# shellcheck disable=SC2016  # for the inner shell
offered() { in_completion 'offered "$@"' "$@"; }

# options_as_values COMMAND FLAG…: those behind which options are offered where a value belongs.
# shellcheck disable=SC2016  # for the inner shell
options_as_values() {
  in_completion 'command=$1
    for flag in "${@:2}"; do
      offered "$command" "$flag" "" | grep -x -- --help >/dev/null && echo "$flag"
    done' "$@" || true
}

# --- Comparisons. ---

same "$page: commands" "$commands" "$(section COMMANDS | sed -En 's/^ {5}([a-z]+)( .*|$)/\1/p' | grep -vxE 'extend and.*' || true)"
same "$completion: commands" "$commands" "$(offered '')"
same "$page: options without a command" "$(help_options)" "$(man_options)"
same "$completion: options without a command" "$(help_options | tr , '\n')" "$(offered -)"
while read -r command; do
  options=$(help_options "$command")
  [[ $options != -h,--help ]] || continue # none of its own
  same "$page: options of $command" "$options" "$(man_options "$command")"
  same "$completion: options of $command" "$(cut -d ' ' -f 1 <<<"$options" | tr , '\n')" "$(offered "$command" - | grep -vx -- --)"
  # A value belongs behind these.
  mapfile -t flags < <(sed -n 's/ .*//p' <<<"$options" | tr , '\n')
  wrong=$(options_as_values "$command" "${flags[@]}")
  [[ -z $wrong ]] || problem "$completion: $command offers options as the value of ${wrong//$'\n'/; }"
done <<<"$commands"
for option in --on-lost --descendants --isolate; do
  same "$completion: $option" "$(help_options run | sed -n "s/^$option //p" | tr '|' '\n')" "$(offered run "$option" '')"
done

# shellcheck disable=SC2016  # for the inner shell
[[ $(in_completion '[[ $(offered acquire --while-pid "") == "$$" ]] && echo "the shell"') ]] ||
  problem "$completion: --while-pid: not the shell alone"

# The command of run, with and without --, and none of our options behind it.
# Readline separates words at `:` and `=`.
for words in '-k a' '-n -k a --' '--wait = 5s --on-lost kill' '-S redis : //h : 6379 -k a' '-nk a' '-nka' '-knk' \
  '-k a -S local : --' '--server = redis : //h : 6379 -nqk a : b'; do
  # shellcheck disable=SC2086  # words
  offered run $words mandoc | grep -x mandoc >/dev/null || problem "$completion: run $words: no command is offered"
  # shellcheck disable=SC2086
  ! offered run $words mandoc -- | grep -x -- --key >/dev/null || problem "$completion: run $words: options are offered behind the command"
done

# A colon of its own is a word, and what is offered stands behind the last one.
# shellcheck disable=SC2016  # for the inner shell
[[ $(in_completion 'COMP_LINE="redlock-cli run -k : mandoc"; offered run -k : mandoc') == *mandoc* ]] ||
  problem "$completion: run -k :: no command is offered"
same "$completion: -S redis:" '//' "$(offered run -S redis :)"
same "$completion: --server=cluster:/" '//' "$(offered run --server = cluster : /)"
same "$completion: --on-lost=t" 'term' "$(offered run -k a --on-lost = t)"
same "$completion: -ns" "$(offered run -n -)" "$(offered run -ns -)"

defaults=0
man_text=$(man_defaults)
while read -r name default; do
  defaults=$((defaults + 1))
  grep -F -- "$name " <<<"$man_text" | grep -F -- "Default: $default." >/dev/null || problem "$page: $name: missing: Default: $default."
done < <(while read -r command; do help_defaults "$command"; done <<<"$commands" | sort -u)
((defaults > 15)) || problem "--help: $defaults defaults"

readme_exit_codes() { sed -En 's/^\| ([0-9]+(, [0-9]+)*) \| (.*) \|$/\1\t\3/p' README.md | tr -d '`'; }
same "README.md: exit codes" "$(help_exit_codes)" "$(readme_exit_codes)"
same "$page: EXIT STATUS" "$(help_exit_codes)" "$(man_exit_codes | grep -v $'^128+n\t')"
grep -q $'^128+n\t' <<<"$(man_exit_codes)" || problem "$page: EXIT STATUS: 128+n is missing"

# The rights of an ACL user: the commands that the scripts call, those that carry the scripts, and what whoever waits listens with.
called=$(grep -hoE "redis\.p?call\('[A-Z]+'" src/store/scripts/*.lua | grep -oE '[A-Z]+' | tr '[:upper:]' '[:lower:]')
rights=$(section SERVERS | sed -n '/ACL SETUSER/,/^$/p' | grep -oE '\+[a-z]+' | tr -d +)
same "$page: rights" "$called"$'\n'eval$'\n'evalsha$'\n'subscribe "$rights"

for command in ./packaging/quickstart.sh ./tests/run.sh; do
  grep -qxF -- "$command" README.md || problem "README.md: the command $command is missing"
  [[ -x $command ]] || problem "README.md: $command is no program"
done

version=$(sed -En 's/^project\(.* VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)
said=$("$cli" --version | head -n 1)
[[ "redlock-cli $version" == "$said" ]] || problem "CMakeLists.txt has version $version, --version says $said"

decisions=0
for file in docs/decisions/[0-9]*.md; do
  decisions=$((decisions + 1))
  grep -qF "($file)" ARCHITECTURE.md || problem "$file: ARCHITECTURE.md does not list it"
done

links=0
for document in ./*.md docs/*.md docs/*/*.md; do
  while read -r link; do
    [[ -n $link && $link != *://* && $link != '#'* ]] || continue
    links=$((links + 1))
    [[ -e $(dirname "$document")/${link%%#*} ]] || problem "${document#./}: there is no $link"
  done < <(grep -oE '\]\([^) ]+\)' "$document" | sed 's/^](//; s/)$//')
done

((problems == 0)) || { echo "docs: $problems problems" >&2; exit 1; }
echo "docs: $(wc -w <<<"$commands") commands, $decisions decisions, $links links: all agree"
