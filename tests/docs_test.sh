plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
#!/usr/bin/env bash
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
# Shows that tests/docs.sh finds what it is there to find: changes a copy of the documents, one thing at a time.
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
# usage: REDLOCK_CLI=build/dev/src/redlock-cli tests/docs_test.sh
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
set -euo pipefail
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
cd "$(dirname "${BASH_SOURCE[0]}")/.."
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'

plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
copy=$(mktemp -d)
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
trap 'rm -rf "$copy"' EXIT
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
failures=0
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
checks=0
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'

plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
fresh_copy() {
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
  rm -rf "$copy/tree"
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
  mkdir -p "$copy/tree/src/store"
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
  cp -r man completions docs packaging tests LICENSE CMakeLists.txt ./*.md "$copy/tree"
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
  cp -r src/store/scripts "$copy/tree/src/store"
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
}
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'

plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
# check accepted|refused WORDS: what tests/docs.sh says of the copy; WORDS are in the message of the refusal.
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
check() {
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
  local expected=$1 words=$2 verdict=accepted output
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
  output=$(tests/docs.sh "$copy/tree" 2>&1) || verdict=refused
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
  # Refused for this, and for nothing else.
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
  [[ $verdict != refused || $output == *"$words"* ]] || verdict=misjudged
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
  checks=$((checks + 1))
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
  if [[ $verdict != "$expected" ]]; then
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
    echo "docs_test: $words: $verdict, expected $expected: $output" >&2
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
    failures=$((failures + 1))
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
  fi
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
}
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'

plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
# plant FILE SED-SCRIPT WORDS: a change that must be found. One that changes nothing is a mistake of this test.
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
plant() {
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
  fresh_copy
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
  sed -i -E "$2" "$copy/tree/$1"
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
  if cmp -s "$1" "$copy/tree/$1"; then
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
    echo "docs_test: $1: '$2' changes nothing" >&2
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
    failures=$((failures + 1))
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
    return
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
  fi
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
  check refused "$3"
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
}
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'

plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
fresh_copy
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
check accepted 'the documents as they are'
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'

plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
page=man/redlock-cli.1
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
plant $page '/^\.It Fl -grace Ar DUR$/d' "$page: options of run: missing: --grace DUR"
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
plant $page 's/^\.It Fl -watch$/&\n.It Fl -planted/' "$page: options of status: unknown to the program: --planted"
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
plant $page 's/^\.Ss Options of release$/.Ss Options of extend/' "$page: options of release: missing: --force"
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
plant $page 's/ , Fl -timeout Ar DUR/ Ar DUR/' "$page: options of run: missing: -w,--wait,--timeout DUR"
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
plant $page 's/^(\.It Fl -if-fence) Ar N/\1 Ar M/' "$page: options of release: missing: --if-fence N"
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
plant $page 's/ , Fl -version$//' "$page: options without a command: missing: -V,--version"
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
plant $page 's/^\.It Cm status$/.It Cm stat/' "$page: commands: missing: status"
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
plant $page '/^\.It 79$/,+1d' "$page: EXIT STATUS: missing: 79"
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
plant $page 's/^denied: login, rights, or TLS verification$/denied: login/' "$page: EXIT STATUS: missing: 77"
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
plant $page 's/^\.It 77$/.It 80\nunconfirmed\n&/' "$page: EXIT STATUS: unknown to the program: 80"
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
plant $page '/^\.It 128\+n$/,+1d' "$page: EXIT STATUS: 128+n is missing"
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
plant $page 's/ \+pttl / /' "$page: rights: missing: pttl"
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
plant $page 's/^\.Sh NOTES$/&\n.Planted/' "$page: mandoc: "
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
plant src/store/scripts/inspect.lua "\$a redis.call('PLANTED', LOCK)" "$page: rights: missing: planted"
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'

plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
completion=completions/redlock-cli.bash
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
plant $completion 's/--isolate --status-fd/--isolate/' "$completion: options of run: missing: --status-fd"
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
plant $completion 's/--exit-code --watch"/--exit-code --watch --planted"/' "$completion: options of status: unknown to the program: --planted"
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
plant $completion "s/-h --help -V --version/-h --help --version/" "$completion: options without a command: missing: -V"
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
plant $completion "s/'run acquire extend/'run extend/" "$completion: commands: missing: acquire"
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
plant $completion 's/\| --grace \|/|/' "$completion: run offers options as the value of --grace"
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
plant $completion "s/'kill term warn'/'kill warn'/" "$completion: --on-lost: missing: term"
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'

plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
plant README.md '/^\.\/tests\/run\.sh$/d' 'README.md: the command ./tests/run.sh is missing'
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
plant README.md 's/\]\(LICENSE\)/](PLANTED)/' 'README.md: there is no PLANTED'
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
plant CMakeLists.txt 's/ VERSION [0-9.]+ / VERSION 99.0.0 /' 'CMakeLists.txt has version 99.0.0'
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
plant ARCHITECTURE.md 's/\(docs\/decisions\/0001-[^)]*\)/()/' 'docs/decisions/0001-eval-first-on-a-connection.md: ARCHITECTURE.md does not list it'
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'

plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
echo "docs_test: $checks checks, $failures failures"
plant man/redlock-cli.1 's/^\.Ql worst$|^\.Ql bad$/.Pq Ql bad , Ql worse/' 'quotes within quotes'
((failures == 0 && checks > 0))
