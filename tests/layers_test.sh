#!/usr/bin/env bash
# Shows that tests/layers.sh finds what it is there to find: plants includes in a copy of src/, one at a time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
failures=0
checks=0

fresh_copy() {
  rm -rf "$copy/src"
  cp -r src "$copy/src"
}

# check accepted|refused FILE LINE: what tests/layers.sh says of a copy in which a new FILE holds LINE.
check() {
  local expected=$1 file=$2 line=$3 verdict=accepted output
  fresh_copy
  mkdir -p "$copy/src/$(dirname "$file")"
  printf '%s\n' "$line" >>"$copy/src/$file"
  output=$(tests/layers.sh "$copy" 2>&1) || verdict=refused
  # Refused for this file, not for something else.
  [[ $verdict != refused || $output == *"src/$file"* || $output == *"src/$(dirname "$file"):"* ]] || verdict=misjudged
  checks=$((checks + 1))
  if [[ $verdict != "$expected" ]]; then
    echo "layers_test: $file with $line: $verdict, expected $expected: $output" >&2
    failures=$((failures + 1))
  fi
}

# Each layer against each: the table of tests/layers.sh once more, from above to below.
layers=(cli run output child engine store/redis store/local store core support)
declare -A may_include=(
  [cli]='run output child engine store core support'
  [run]='output child engine store core support'
  [output]='child engine core support'
  [child]='core support'
  [engine]='store core support'
  [store/redis]='store core support'
  [store/local]='store core support'
  [store]='core support'
  [core]='support'
  [support]=''
)
for from in "${layers[@]}"; do
  for to in "${layers[@]}"; do
    if [[ $from == "$to" || " ${may_include[$from]} " == *" $to "* ]]; then expected=accepted; else expected=refused; fi
    check "$expected" "$from/planted.cpp" "#include \"$to/planted.hpp\""
  done
done

check accepted main.cpp '#include "cli/planted.hpp"'
check refused main.cpp '#include "engine/planted.hpp"'
check refused main.cpp '#include "store/redis/planted.hpp"'
check accepted stores.cpp '#include "store/redis/planted.hpp"'
check accepted stores.cpp '#include "store/local/planted.hpp"'
check refused stores.cpp '#include "engine/planted.hpp"'
check refused stray.cpp '#include <string>'
check refused shell/planted.cpp '#include <string>'
check refused core/inner/planted.cpp '#include <string>'

# However it is spelt.
check refused core/planted.hpp '  #  include   "engine/planted.hpp" // reason'
check refused core/planted.hpp '#include "../engine/planted.hpp"'
check refused core/planted.hpp '#include "core/../engine/planted.hpp"'
check refused core/planted.hpp '#include "planted.hpp"'
check refused core/planted.hpp '#include ENGINE_HEADER'
check refused core/planted.inc '#include "engine/planted.hpp"'
check refused support/planted.hpp '#include <core/types.hpp>'

# Foreign libraries.
check accepted cli/planted.cpp '#include <CLI/CLI.hpp>'
check refused output/planted.cpp '#include <CLI/CLI.hpp>'
check accepted store/redis/planted.cpp '#include <hiredis/hiredis.h>'
check refused store/planted.cpp '#include <hiredis/hiredis.h>'
check refused engine/planted.cpp '#include <hiredis/read.h>'
check refused cli/planted.cpp '#include <hiredis/hiredis.h>'
check accepted store/local/planted.cpp '#include <lua5.1/lua.hpp>'
check refused store/planted.cpp '#include <lua5.1/lua.hpp>'
check accepted support/planted.cpp '#include <sha2.h>'
check refused store/local/planted.cpp '#include <sha1.h>'
check accepted output/planted.cpp '#include <nlohmann/json.hpp>'
check accepted store/planted.cpp '#include <nlohmann/json.hpp>'
check accepted cli/planted.cpp '#include <nlohmann/json.hpp>'
check refused engine/planted.cpp '#include <nlohmann/json.hpp>'
check accepted engine/planted.cpp '#include <asio.hpp>'
check refused core/planted.cpp '#include <asio.hpp>'
check refused core/planted.cpp '#include <asio/steady_timer.hpp>'
check refused core/planted.cpp '#include <fmt/format.h>'
check refused core/planted.cpp '#include <unistd.h>'
check accepted core/planted.cpp '#include <vector>'

# An empty tree must not pass for a clean one.
rm -rf "$copy/src"
mkdir "$copy/src"
checks=$((checks + 1))
if tests/layers.sh "$copy" >/dev/null 2>&1; then
  echo "layers_test: an empty src/ was accepted" >&2
  failures=$((failures + 1))
fi

echo "layers_test: $checks checks, $failures failures"
((failures == 0))
