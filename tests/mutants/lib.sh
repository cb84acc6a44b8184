# shellcheck shell=bash
# For scripts that break the code on purpose, in a copy of the tree: tests/mutants/run.sh and tests/sim/mutants.sh. To be sourced from the
# root of the repository, with `set -euo pipefail`.

die() {
  echo "mutants: $*" >&2
  exit 1
}

# --- The list ---

names=()
declare -A value_of=() old_of=() new_of=()

# read_list FILE KEY…: reads the blocks that tests/mutants/list describes in its head. A block has all these keys; value_of[NAME.KEY] is
# what a key says.
read_list() {
  local list=$1 line number=0 state=between name='' key
  shift
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
        [[ -z ${old_of[$name]+set} ]] || die "$list:$number: a second $name"
        names+=("$name")
        old_of[$name]='' new_of[$name]=''
        state=keys
        ;;
      keys,====)
        for key; do [[ -n ${value_of[$name.$key]:-} ]] || die "$list:$number: $name needs $key:"; done
        state=old
        ;;
      keys,*': '*)
        key=${line%%: *}
        [[ " $* " == *" $key "* ]] || die "$list:$number: not expected here: $line"
        value_of[$name.$key]=${line#*: }
        ;;
      *) die "$list:$number: not expected here: $line" ;;
    esac
  done <"$list"
  [[ $state == between ]] || die "$list: $name has no end"
  ((${#names[@]})) || die "$list: no mutants"
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
# shellcheck disable=SC2034 # for whoever calls
mutate() {
  local name=$1 file=$copy/${value_of[$1.file]} content rest
  problem=
  [[ -f $file ]] || { problem="no file ${value_of[$name.file]}"; return; }
  read_file "$file"
  whole=$content
  rest=${whole#*"${old_of[$name]}"}
  [[ $rest != "$whole" ]] || { problem="the text does not occur in ${value_of[$name.file]}"; return; }
  [[ ${rest#*"${old_of[$name]}"} == "$rest" ]] || { problem="the text occurs more than once in ${value_of[$name.file]}"; return; }
  printf '%s' "${whole%%"${old_of[$name]}"*}${new_of[$name]}$rest" >"$file"
}

restore() { printf '%s' "$whole" >"$copy/${value_of[$1.file]}"; }

# --- All of them ---

# Tries each mutant that was chosen, with the function `try`, and prints its rule (if it has one), its name and what came of it. Fails
# unless all were caught.
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
