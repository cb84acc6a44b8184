#!/usr/bin/env bash
# Tries the mutants of tests/mutants/list whose turn it is (one, unless told) by the day of the
# year, or those named. It compiles only the file that is broken, builds the unit tests of its layer
# if need be, and links the object in front of the build that is there: seconds each. Left out,
# unless named, are those in headers and scripts, which more hangs on, and those that only bats
# tests notice, which take minutes: tests/mutants/run.sh tries them all.
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

# The layers whose unit tests may match REGEX: those that it names, or all.
layers_of() {
  local all named
  all=$(sed -n 's/^redlock_unit_test(\([a-z]*\)$/\1/p' tests/unit/CMakeLists.txt)
  named=$(grep -oE '[a-z]+\\\.' <<<"$1" | tr -d '\\.' | grep -xF "$all") || named=$all
  [[ $1 == ^bats* ]] || echo "$named"
}

# unit_tests LAYER REGEX: those that match, as the program calls them; it is built when it is not.
unit_tests() {
  nice -n 10 ninja -C "$BUILD" "unit-$1" >"$copy/mutant.log" 2>&1 || return
  "$BUILD/tests/unit/unit-$1" --gtest_list_tests |
    awk -v layer="$1" '/^[^ ]/ { suite = $1 } /^ / { print layer "." suite $1 }' |
    { grep -E "$2" || true; } | sed "s/^$1\.//"
}

# The files of bats tests that match REGEX.
bats_files() {
  ctest --test-dir "$BUILD" -N -R "$1" | sed -n '/\.local$/d; s/^ *Test *#[0-9]*: bats\.//p'
}

try() {
  local name=$1 regex=${value_of[$1.test]} problem whole layer tests file files tried=
  mutate "$name"
  [[ -z $problem ]] || { echo "error: $problem"; return; }
  file=${value_of[$name.file]}
  compile "$file" "$copy/mutant.o" >"$copy/mutant.log" 2>&1 || {
    echo "error: it does not compile"
    return
  }
  restore "$name"

  # Those of a layer are one program, and most are faster than bats.
  for layer in $(layers_of "$regex"); do
    tests=$(unit_tests "$layer" "$regex") || {
      echo "error: unit-$layer does not build, or does not list its tests"
      return
    }
    [[ -n $tests ]] || continue
    tried=yes
    link "tests/unit/unit-$layer" "$copy/mutant.o" "$copy/unit-$layer" \
      >"$copy/mutant.log" 2>&1 || {
      echo "error: it does not link"
      return
    }
    if ! reaper 120 "$copy/unit-$layer" --gtest_fail_fast \
      --gtest_filter="$(paste -sd : <<<"$tests")" >"$copy/mutant.log" 2>&1; then
      echo "caught by unit-$layer"
      return
    fi
  done
  files=$(bats_files "$regex")
  if [[ -z $files ]]; then
    [[ -n $tried ]] && echo survived || echo "error: no tests"
    return
  fi
  link src/redlock-cli "$copy/mutant.o" "$copy/redlock-cli" >"$copy/mutant.log" 2>&1 || {
    echo "error: it does not link"
    return
  }
  for file in $files; do
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
