# shellcheck shell=bash
# For scripts that break the code on purpose, in a copy of the tree: tests/mutants/run.sh,
# tests/sim/mutants.sh and tests/faults/mutants.sh. To be sourced from the root of the repository,
# with `set -euo pipefail`.

die() {
  echo "mutants: $*" >&2
  exit 1
}

# --- The list ---

names=()
declare -A value_of=() old_of=() new_of=()

# read_list FILE KEY…: a list and the keys of its mutants; value_of[NAME.KEY] is what one says to a
# key.
read_list() {
  local fields name key i=0
  mapfile -d '' -t fields < <(tests/mutants/mutants.py read "$@")
  wait $! || exit
  shift
  while ((i < ${#fields[@]})); do
    name=${fields[i++]}
    names+=("$name")
    for key; do value_of[$name.$key]=${fields[i++]}; done
    old_of[$name]=${fields[i++]} new_of[$name]=${fields[i++]}
  done
}

# choose NAME…: leaves in names only those, if there are any.
choose() {
  local name
  (($#)) || return 0
  for name; do [[ -n ${old_of[$name]+set} ]] || die "no mutant is called $name"; done
  names=("$@")
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
build() { in_copy cmake --build --preset dev -j "$(nproc)" --target "$1" >"$copy/mutant.log" 2>&1; }

die_with_log() {
  tail -n 40 "$copy/mutant.log" >&2
  die "$*"
}

# --- A change ---

# Sets content to a file's text, its last newlines included.
read_file() {
  content=$(cat "$1" && echo .)
  content=${content%.}
}

# Makes the change NAME in the copy; sets problem, to nothing when it worked. restore takes it back.
# shellcheck disable=SC2034 # for the caller
mutate() {
  local name=$1 file=$copy/${value_of[$1.file]} content
  problem=
  [[ -f $file ]] || { problem="no file ${value_of[$name.file]}"; return; }
  read_file "$file"
  whole=$content
  problem=$(OLD=${old_of[$name]} NEW=${new_of[$name]} tests/mutants/mutants.py replace "$file")
  [[ -z $problem ]] || problem+=" in ${value_of[$name.file]}"
}

restore() { printf '%s' "$whole" >"$copy/${value_of[$1.file]}"; }

# --- All of them ---

# Tries each mutant that was chosen, with the function `try`, and prints its rule (if it has one),
# its name and what came of it. Fails unless all were caught.
try_all() {
  local name verdict caught=0 survived=0 errors=0
  for name in "${names[@]}"; do
    verdict=$(try "$name")
    printf '%-4s %-32s %s\n' "${value_of[$name.rule]-}" "$name" "$verdict"
    case $verdict in
      caught*) caught=$((caught + 1)) ;;
      survived) survived=$((survived + 1)) ;;
      *) errors=$((errors + 1)) ;;
    esac
  done
  echo "$caught caught, $survived survived, $errors not tried"
  ((survived == 0 && errors == 0))
}
