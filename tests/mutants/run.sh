#!/usr/bin/env bash
# Breaks the code on purpose, one change at a time, and demands that the tests notice. Works on a copy of the tree.
# usage: tests/mutants/run.sh [NAME…]   (all mutants of tests/mutants/list, or those named)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

readonly list=tests/mutants/list
# For one test; an endless loop is a way to be caught too.
readonly test_timeout=120

die() {
  echo "mutants: $*" >&2
  exit 1
}

# --- The list ---

names=()
declare -A file_of=() test_of=() old_of=() new_of=()

# Reads the blocks that tests/mutants/list describes in its head.
read_list() {
  local line number=0 state=between name=
  while IFS= read -r line || [[ -n $line ]]; do
    number=$((number + 1))
    case $state,$line in
      old,----) state=new ;;
      new,====)
        state=between
        [[ -n ${old_of[$name]} ]] || die "$list:$number: $name replaces nothing"
        [[ ${old_of[$name]} != "${new_of[$name]}" ]] || die "$list:$number: $name changes nothing"
        ;;
      old,*) old_of[$name]+=${old_of[$name]:+$'\n'}$line ;;
      new,*) new_of[$name]+=${new_of[$name]:+$'\n'}$line ;;
      between, | between,'#'*) ;;
      between,'mutant: '*)
        name=${line#mutant: }
        [[ -z ${file_of[$name]+set} ]] || die "$list:$number: a second $name"
        names+=("$name")
        file_of[$name]='' test_of[$name]='' old_of[$name]='' new_of[$name]=''
        state=keys
        ;;
      keys,'file: '*) file_of[$name]=${line#file: } ;;
      keys,'test: '*) test_of[$name]=${line#test: } ;;
      keys,====)
        [[ -n ${file_of[$name]} && -n ${test_of[$name]} ]] || die "$list:$number: $name needs file: and test:"
        state=old
        ;;
      *) die "$list:$number: not expected here: $line" ;;
    esac
  done <"$list"
  [[ $state == between ]] || die "$list: $name has no end"
  ((${#names[@]})) || die "$list: no mutants"
}

# --- The copy ---

copy=
clean_up() { [[ -z $copy ]] || rm -rf "$copy"; }
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# What git tracks, and what it would if added; as it is in the working tree, not as committed.
make_copy() {
  copy=$(mktemp -d)
  git ls-files -z --cached --others --exclude-standard |
    while IFS= read -r -d '' path; do [[ ! -e $path ]] || printf '%s\0' "$path"; done |
    tar -c --null -T - | tar -x -C "$copy"
}

in_copy() (cd "$copy" && "$@")

configure() { in_copy cmake --preset dev -DREDLOCK_WERROR=OFF >"$copy/mutant.log" 2>&1; }
build() { in_copy cmake --build --preset dev -j "$(nproc)" >"$copy/mutant.log" 2>&1; }
run_tests() {
  in_copy ctest --test-dir build/dev -R "$1" -j "$(nproc)" --timeout "$test_timeout" --no-tests=error "${@:2}" >"$copy/mutant.log" 2>&1
}

die_with_log() {
  tail -n 40 "$copy/mutant.log" >&2
  die "$*"
}

# Sets content to a file's text, its last newlines included.
read_file() {
  content=$(cat "$1" && echo .)
  content=${content%.}
}

# Prints what became of mutant NAME: caught by whom, or survived, or why it could not be tried.
try() {
  local name=$1 file=$copy/${file_of[$1]} content rest whole verdict
  [[ -f $file ]] || { echo "error: no file ${file_of[$name]}"; return; }
  read_file "$file"
  whole=$content
  rest=${whole#*"${old_of[$name]}"}
  [[ $rest != "$whole" ]] || { echo "error: the text does not occur in ${file_of[$name]}"; return; }
  [[ ${rest#*"${old_of[$name]}"} == "$rest" ]] || { echo "error: the text occurs more than once in ${file_of[$name]}"; return; }

  printf '%s' "${whole%%"${old_of[$name]}"*}${new_of[$name]}$rest" >"$file"
  if ! build; then
    verdict="error: it does not build: $(grep -m 1 'error' "$copy/mutant.log" || true)"
  elif run_tests "${test_of[$name]}" --stop-on-failure; then
    verdict=survived
  else
    verdict=$(sed -n 's/^[[:space:]]*[0-9]* - \(.*\) (\(.*\)).*$/\1/p' "$copy/mutant.log" | sort -u | head -n 1)
    if [[ -n $verdict ]]; then verdict="caught by $verdict"; else verdict='error: ctest failed, but no test did'; fi
  fi
  printf '%s' "$whole" >"$file"
  echo "$verdict"
}

read_list
if (($#)); then
  for name; do [[ -n ${file_of[$name]+set} ]] || die "no mutant is called $name"; done
  names=("$@")
fi

make_copy
echo "mutants: building the tree as it is"
configure || die_with_log "the tree does not configure"
build || die_with_log "the tree does not build"

# Every test must be green while nothing is broken, and there must be one for every mutant: else a failure would prove nothing.
all=
for name in "${names[@]}"; do
  all+=${all:+|}${test_of[$name]}
  run_tests "${test_of[$name]}" -N || die_with_log "ctest cannot list the tests"
  grep -q '^Total Tests: [1-9]' "$copy/mutant.log" || die "$name: no test matches ${test_of[$name]}"
done
run_tests "$all" --output-on-failure || die_with_log "tests fail although nothing is broken"

caught=0
survived=0
errors=0
for name in "${names[@]}"; do
  verdict=$(try "$name")
  printf '%-32s %s\n' "$name" "$verdict"
  case $verdict in
    caught*) caught=$((caught + 1)) ;;
    survived) survived=$((survived + 1)) ;;
    *) errors=$((errors + 1)) ;;
  esac
done
((errors == 0)) || echo "$errors could not be tried"
echo "$caught caught, $survived survived"
((survived == 0 && errors == 0))
