#!/usr/bin/env bash
# The step of action.yml, which describes the variables.
set -euo pipefail

# die CODE TEXT
die() {
  echo "::error::$2"
  exit "$1"
}
# lines_of TEXT: sets the array lines to its lines, without surrounding blanks and empty lines.
lines_of() {
  local line
  lines=()
  while read -r line; do
    [[ -z $line ]] || lines+=("$line")
  done <<<"$1"
}

lines_of "$LOCK_KEY"
keys=("${lines[@]}")
((${#keys[@]} > 0)) || die 64 "redlock-cli: the input key is empty"
[[ -n ${LOCK_RUN//[[:space:]]/} ]] || die 64 "redlock-cli: the input run is empty"
# GitHub passes a missing secret as an empty string.
[[ -n ${REDLOCK_SERVER-} ]] ||
  die 78 "redlock-cli: the input servers is empty; is the secret set, and may this workflow read it?"

if [[ -n ${LOCK_PACKAGE-} ]]; then
  [[ -n ${LOCK_SHA256-} ]] || die 64 "redlock-cli: the input package needs the input sha256"
  place=${RUNNER_TEMP:?}/redlock-cli
  mkdir -p "$place"
  curl -fsSL --retry 3 -o "$place.tar.gz" "$LOCK_PACKAGE"
  echo "$LOCK_SHA256  $place.tar.gz" | sha256sum --check --quiet
  tar -C "$place" -xzf "$place.tar.gz" --strip-components=1
  PATH=$place/bin:$PATH
fi
command -v redlock-cli >/dev/null ||
  die 64 "redlock-cli is not installed on this runner; set the input package to the tarball of a release"

arguments=(--note "${GITHUB_SERVER_URL-}/${GITHUB_REPOSITORY-}/actions/runs/${GITHUB_RUN_ID-}")
for key in "${keys[@]}"; do arguments+=(-k "$key"); done
[[ -z ${LOCK_WAIT-} ]] || arguments+=(-w "$LOCK_WAIT")
lines_of "${LOCK_OPTIONS-}"
for option in "${lines[@]}"; do
  # Each line is one argument: "--ttl 60s" would be an unknown option.
  [[ ! $option =~ ^(--[^=[:blank:]]+)[[:blank:]]+(.*)$ ]] ||
    die 64 "redlock-cli: the input options: write ${BASH_REMATCH[1]}=${BASH_REMATCH[2]}"
  arguments+=("$option")
done

command=$LOCK_RUN
unset LOCK_KEY LOCK_RUN LOCK_WAIT LOCK_OPTIONS LOCK_PACKAGE LOCK_SHA256
exec redlock-cli run "${arguments[@]}" -- bash --noprofile --norc -eo pipefail -c "$command"
