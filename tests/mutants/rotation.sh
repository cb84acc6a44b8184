#!/usr/bin/env bash
# Tries the mutants of tests/mutants/list whose turn it is (one, unless told) by the day of the
# year, or those named. It compiles only the file that is broken, and links it in front of the build
# that is there: seconds each. Left out, unless named, are those in headers and scripts, which more
# hangs on, and those that only bats tests notice, which take minutes: tests/mutants/run.sh tries
# them all.
# usage: tests/mutants/rotation.sh [-n COUNT] [-d DAY] [NAME…]     (of build/dev, or of the build
# directory in BUILD)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=tests/mutants/lib.sh
source tests/mutants/lib.sh

readonly BUILD=${BUILD:-$PWD/build/dev}
count=1
day=$(date +%j)
while getopts n:d: option; do
  case $option in
    n) count=$OPTARG ;;
    d) day=$OPTARG ;;
    *) exit 64 ;;
  esac
done
shift $((OPTIND - 1))

# compile FILE OBJECT: the file of the copy, with the others of its batch, as the build compiles
# that of the tree.
compile() {
  local source=$PWD/$1 mutant=$copy/$1 batch command
  batch=$(grep -lF "\"$source\"" "$BUILD"/src/CMakeFiles/*/Unity/*.cxx) || true
  if [[ -n $batch ]]; then
    mutant=$copy/mutant.cxx
    sed "s|\"$source\"|\"$copy/$1\"|" "$batch" >"$mutant"
    source=$batch
  fi
  command=$(/usr/bin/python3 -c 'import json, sys
print(next(c["command"] for c in json.load(open(sys.argv[1])) if c["file"] == sys.argv[2]))' \
    "$BUILD/compile_commands.json" "$source")
  (cd "$BUILD" && eval "${command% -o *} -Wno-error -o '$2' -c '$mutant'")
}

# link PROGRAM OBJECT OUTPUT: the program as it was built, but for the object: being first, it takes
# the place of the library's.
link() {
  local command
  command=$(ninja -C "$BUILD" -t commands "$1" | tail -n 1)
  (cd "$BUILD" && eval "${command/ -o "$1" / "'$2'" -o "'$3'" }")
}

# The names of the tests that are to notice it.
tests_of() {
  ctest --test-dir "$BUILD" -N -R "${value_of[$1.test]}" | sed -n 's/^ *Test *#[0-9]*: //p'
}

try() {
  local name=$1 problem whole tests layer file
  mutate "$name"
  [[ -z $problem ]] || { echo "error: $problem"; return; }
  file=${value_of[$name.file]}
  compile "$file" "$copy/mutant.o" >"$copy/mutant.log" 2>&1 || {
    echo "error: it does not compile"
    return
  }
  restore "$name"
  tests=$(tests_of "$name")
  [[ -n $tests ]] || { echo "error: no tests"; return; }

  # Those of a layer are one program, and most are faster than bats.
  for layer in $(sed -n '/^bats\./!s/^\([a-z]*\)\..*/\1/p' <<<"$tests" | sort -u); do
    link "tests/unit-$layer" "$copy/mutant.o" "$copy/unit-$layer" >"$copy/mutant.log" 2>&1 || {
      echo "error: it does not link"
      return
    }
    if ! reaper 120 "$copy/unit-$layer" --gtest_fail_fast \
      --gtest_filter="$(sed -n "s/^$layer\.//p" <<<"$tests" | paste -sd :)" \
      >"$copy/mutant.log" 2>&1; then
      echo "caught by unit-$layer"
      return
    fi
  done
  grep -q '^bats\.' <<<"$tests" || { echo survived; return; }
  link src/redlock-cli "$copy/mutant.o" "$copy/redlock-cli" >"$copy/mutant.log" 2>&1 || {
    echo "error: it does not link"
    return
  }
  for file in $(sed -n 's/^bats\.//p' <<<"$tests"); do
    if ! REDLOCK_CLI=$copy/redlock-cli LOAD_TREE=$BUILD/tests/load-tree \
      reaper 280 bats "tests/bats/$file.bats" >"$copy/mutant.log" 2>&1; then
      echo "caught by bats.$file"
      return
    fi
  done
  echo survived
}

reaper() { "$BUILD/tests/reaper" "$@"; }

read_list tests/mutants/list file test
candidates=()
for name in "${names[@]}"; do
  [[ ${value_of[$name.file]} != *.cpp || ${value_of[$name.test]} == ^bats* ]] ||
    candidates+=("$name")
done
chosen=("$@")
if ((${#chosen[@]} == 0)); then
  for ((i = 0; i < count; ++i)); do
    chosen+=("${candidates[(10#$day * count + i) % ${#candidates[@]}]}")
  done
fi
choose "${chosen[@]}"
make_copy
try_all
