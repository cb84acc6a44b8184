#!/usr/bin/env bash
# Fails when a layer under src/ includes what it must not know: the rules are in allowed and library_rule().
# usage: tests/layers.sh [ROOT]   (ROOT: the repository, or a copy of it)
set -euo pipefail

root=${1:-$(dirname "${BASH_SOURCE[0]}")/..}
cd "$root/src"

# The folders there are. A file's layer is its folder.
readonly folders='cli run output child engine store store/redis store/local store/scripts core support'

# Which layers a layer may include, besides itself.
declare -A allowed=(
  [main.cpp]='cli'
  [stores.cpp]='store store/redis store/local'
  [cli]='run output child engine store core support'
  [run]='output child engine store core support'
  [output]='engine child core support'
  [child]='core support'
  [engine]='store core support'
  [store/redis]='store core support'
  [store/local]='store core support'
  [store]='core support'
  [core]='support'
  [support]=''
)

# Sets broken_rule to the rule that LAYER breaks by including the foreign header HEADER, or to nothing.
library_rule() {
  local layer=$1 header=$2
  broken_rule=
  case $header in
    CLI/* | toml++/*) [[ $layer == cli ]] || broken_rule='CLI11 and toml++ are for cli alone' ;;
    hiredis/* | hiredis.h) [[ $layer == store/redis ]] || broken_rule='hiredis is for store/redis alone' ;;
    lua5.1/*) [[ $layer == store/local ]] || broken_rule='Lua is for store/local alone' ;;
    sha1.h | sha2.h) [[ $layer == support ]] || broken_rule='libmd is for support alone' ;;
    openssl/*) [[ $layer == store/redis ]] || broken_rule='OpenSSL is for store/redis alone' ;;
    nlohmann/*) [[ $layer =~ ^(store|output|cli)$ ]] || broken_rule='nlohmann is for store, output and cli' ;;
    # Standard headers have no extension and no folder; tl::expected is what support/result.hpp brings.
    tl/expected.hpp) ;;
    */* | *.*) [[ $layer != core ]] || broken_rule='core knows the C++ standard library and nothing else' ;;
    *) ;;
  esac
}

is_in() { [[ " $2 " == *" $1 "* ]]; }

violations=0
violation() {
  echo "layers: $*" >&2
  violations=$((violations + 1))
}

while IFS= read -r folder; do
  is_in "$folder" "$folders" || violation "src/$folder: an unknown folder; tests/layers.sh must have a rule for it"
done < <(find . -mindepth 1 -type d -printf '%P\n')

mapfile -t files < <(find . -type f ! -name '*.txt' ! -name '*.lua' -printf '%P\n' | LC_ALL=C sort)
((${#files[@]})) || violation "no source files under src/: nothing was checked"

declare -A layer_of=()
for file in "${files[@]}"; do
  if [[ $file == */* ]]; then
    layer_of[$file]=${file%/*}
  else
    layer_of[$file]=$file
    is_in "$file" 'main.cpp stores.cpp' ||
      violation "src/$file: only main.cpp and stores.cpp may lie outside a layer"
  fi
done

includes=0
while IFS=$'\t' read -r file line quote header; do
  includes=$((includes + 1))
  layer=${layer_of[$file]}
  where=src/$file:$line
  folder=${header%/*}
  if [[ $quote == '?' ]]; then
    violation "$where: cannot tell what \"$header\" includes"
  elif [[ $quote == '"' ]] || is_in "${header%%/*}" "$folders"; then
    if ! is_in "$folder" "$folders" || [[ /$header/ == */../* ]]; then
      violation "$where: \"$header\" is not a path from src/"
    elif [[ $folder != "$layer" ]] && ! is_in "$folder" "${allowed[$layer]-}"; then
      violation "$where: $layer must not include $folder ($header)"
    fi
  else
    library_rule "$layer" "$header"
    [[ -z $broken_rule ]] || violation "$where: <$header>: $broken_rule"
  fi
done < <(((${#files[@]} == 0)) || awk -v OFS='\t' '
  /^[ \t]*#[ \t]*(include|include_next|import)([ \t<"]|$)/ {
    text = $0
    sub(/^[ \t]*#[ \t]*(include_next|include|import)[ \t]*/, "", text)
    if (match(text, /^"[^"]+"/) || match(text, /^<[^>]+>/))
      print FILENAME, FNR, substr(text, 1, 1), substr(text, 2, RLENGTH - 2)
    else
      print FILENAME, FNR, "?", text
  }' "${files[@]}")

((violations == 0)) || { echo "layers: $violations violations" >&2; exit 1; }
echo "layers: ${#files[@]} files, $includes includes, none upward"
