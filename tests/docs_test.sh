#!/usr/bin/env bash
# Shows that tests/docs.sh finds what it is there to find: changes a copy of the documents, one thing at a time.
# usage: REDLOCK_CLI=build/dev/src/redlock-cli tests/docs_test.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
failures=0
checks=0

fresh_copy() {
  rm -rf "$copy/tree"
  mkdir -p "$copy/tree/src/store"
  cp -r man completions docs packaging tests LICENSE CMakeLists.txt ./*.md "$copy/tree"
  cp -r src/store/scripts "$copy/tree/src/store"
}

# check accepted|refused WORDS: what tests/docs.sh says of the copy; WORDS are in the message of the refusal.
check() {
  local expected=$1 words=$2 verdict=accepted output
  output=$(tests/docs.sh "$copy/tree" 2>&1) || verdict=refused
  # Refused for this, and for nothing else.
  [[ $verdict != refused || $output == *"$words"* ]] || verdict=misjudged
  checks=$((checks + 1))
  if [[ $verdict != "$expected" ]]; then
    echo "docs_test: $words: $verdict, expected $expected: $output" >&2
    failures=$((failures + 1))
  fi
}

# plant FILE SED-SCRIPT WORDS: a change that must be found. One that changes nothing is a mistake of this test.
plant() {
  fresh_copy
  sed -i -E "$2" "$copy/tree/$1"
  if cmp -s "$1" "$copy/tree/$1"; then
    echo "docs_test: $1: '$2' changes nothing" >&2
    failures=$((failures + 1))
    return
  fi
  check refused "$3"
}

fresh_copy
check accepted 'the documents as they are'

page=man/redlock-cli.1
plant $page '/^\.It Fl -grace Ar DUR$/d' "$page: options of run: missing: --grace DUR"
plant $page 's/^\.It Fl -watch$/&\n.It Fl -planted/' "$page: options of status: unknown to the program: --planted"
plant $page 's/^\.Ss Options of release$/.Ss Options of extend/' "$page: options of release: missing: --force"
plant $page 's/ , Fl -timeout Ar DUR/ Ar DUR/' "$page: options of run: missing: -w,--wait,--timeout DUR"
plant $page 's/^(\.It Fl -if-fence) Ar N/\1 Ar M/' "$page: options of release: missing: --if-fence N"
plant $page 's/ , Fl -version$//' "$page: options without a command: missing: -V,--version"
plant $page 's/^\.It Cm status$/.It Cm stat/' "$page: commands: missing: status"
plant $page '/^\.It 79$/,+1d' "$page: EXIT STATUS: missing: 79"
plant $page 's/^denied: login, rights, or TLS verification$/denied: login/' "$page: EXIT STATUS: missing: 77"
plant $page 's/^\.It 77$/.It 80\nunconfirmed\n&/' "$page: EXIT STATUS: unknown to the program: 80"
plant $page '/^\.It 128\+n$/,+1d' "$page: EXIT STATUS: 128+n is missing"
plant $page 's/ \+pttl / /' "$page: rights: missing: pttl"
plant $page 's/^\.Sh NOTES$/&\n.Planted/' "$page: mandoc: "
plant $page 's/^\.Sh NOTES$/&\n.Pq Ql one , Ql two/' "$page: quotes within quotes"
plant src/store/scripts/inspect.lua "\$a redis.call('PLANTED', LOCK)" "$page: rights: missing: planted"

plant $page 's/^Default: 10s\.$/Default: 11s./' "$page: --unavailable-wait: missing: Default: 10s."

completion=completions/redlock-cli.bash
# shellcheck disable=SC2016  # the text of the completion
{
  plant $completion 's#^  case \$kind in$#  words=("${words[@]/--status-fd/}")\n&#' "$completion: options of run: missing: --status-fd"
  plant $completion 's#^  case \$kind in$#  words+=(--planted)\n&#' "$completion: options of run: unknown to the program: --planted"
  plant $completion 's/^    words\)/    nothing)/' "$completion: commands: missing: acquire"
  plant $completion 's/completion suggest "\$\{typed/&[@]:1:1}" "${typed/' "$completion: --on-lost: missing: kill"
  plant $completion 's/^      _redlock_cli_offer_command .*/      _redlock_cli_offer --key mandoc/; s/== "\$current"\*/== */' "$completion: run -k a: options are offered behind the command"
  plant $completion 's/^      _redlock_cli_offer_command .*//' "$completion: run -k a: no command is offered"
}

plant README.md 's/^\| 79 \|/| 99 |/' 'README.md: exit codes: missing: 79'
plant README.md '/^\.\/tests\/run\.sh$/d' 'README.md: the command ./tests/run.sh is missing'
plant README.md 's/\]\(LICENSE\)/](PLANTED)/' 'README.md: there is no PLANTED'
plant CMakeLists.txt 's/ VERSION [0-9.]+ / VERSION 99.0.0 /' 'CMakeLists.txt has version 99.0.0'
plant ARCHITECTURE.md 's/\(docs\/decisions\/0001-[^)]*\)/()/' 'docs/decisions/0001-eval-first-on-a-connection.md: ARCHITECTURE.md does not list it'

echo "docs_test: $checks checks, $failures failures"
((failures == 0 && checks > 0))
