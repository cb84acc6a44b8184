#!/usr/bin/env bash
# The step of /action.yml, which describes the variables.
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

# The release that this action belongs to: $release, its tag, and $package, the URL of its file.
choose_release() {
  release=${LOCK_REF-}
  [[ $release =~ ^v[0-9]+\.[0-9]+\.[0-9]+$ ]] ||
    die 64 "redlock-cli: use the action by the tag of a release, such as @v0.2.0, or set the inputs \
package and sha256"
  local arch
  case $(uname -m) in
    x86_64) arch=x86_64 ;;
    aarch64 | arm64) arch=aarch64 ;;
    *) die 69 "redlock-cli: no release has a file for $(uname -m)" ;;
  esac
  package=${GITHUB_SERVER_URL-https://github.com}/$LOCK_REPOSITORY/releases/download/$release
  package+=/redlock-cli-${release#v}-linux-$arch.tar.gz
}

# check FILE: fails unless it is what the input sha256 says, or what the release's workflow made.
check() {
  if [[ -n ${LOCK_SHA256-} ]]; then
    echo "$LOCK_SHA256  $1" | sha256sum --check --quiet ||
      die 65 "redlock-cli: $package is not what the input sha256 says"
    return
  fi
  command -v gh >/dev/null ||
    die 69 "redlock-cli: this runner has no gh to verify the release with; set the input sha256"
  GH_TOKEN=${LOCK_TOKEN-} gh attestation verify "$1" --repo "$LOCK_REPOSITORY" \
    --signer-workflow "$LOCK_REPOSITORY/.github/workflows/release.yml" \
    --source-ref "refs/tags/$release" >/dev/null ||
    die 65 "redlock-cli: $package has no attestation of its release; set the input sha256"
}

release=
package=${LOCK_PACKAGE-}
if [[ $package != installed ]]; then
  if [[ -z $package ]]; then
    choose_release
  else
    [[ -n ${LOCK_SHA256-} ]] || die 64 "redlock-cli: the input package needs the input sha256"
  fi
  # Of this step alone: steps of a job may use the action beside each other, and jobs one machine.
  place=$(mktemp -d "${RUNNER_TEMP:?}/redlock-cli.XXXXXX")
  curl -fsSL --retry 3 -o "$place/file.tar.gz" "$package" ||
    die 69 "redlock-cli: cannot fetch $package"
  check "$place/file.tar.gz"
  tar -C "$place" -xzf "$place/file.tar.gz" --strip-components=1
  PATH=$place/bin:$PATH
fi
command -v redlock-cli >/dev/null ||
  die 64 "redlock-cli is not installed on this runner; leave out the input package"

arguments=(--note "${GITHUB_SERVER_URL-}/${GITHUB_REPOSITORY-}/actions/runs/${GITHUB_RUN_ID-}")
for key in "${keys[@]}"; do arguments+=("--key=$key"); done
[[ -z ${LOCK_WAIT-} ]] || arguments+=(-w "$LOCK_WAIT")
lines_of "${LOCK_OPTIONS-}"
for option in "${lines[@]}"; do
  # Each line is one argument: "--ttl 60s" would be an unknown option.
  [[ ! $option =~ ^(--[^=[:blank:]]+)[[:blank:]]+(.*)$ ]] ||
    die 64 "redlock-cli: the input options: write ${BASH_REMATCH[1]}=${BASH_REMATCH[2]}"
  arguments+=("$option")
done

command=$LOCK_RUN
unset LOCK_KEY LOCK_RUN LOCK_WAIT LOCK_OPTIONS LOCK_PACKAGE LOCK_SHA256 LOCK_REPOSITORY LOCK_REF \
  LOCK_TOKEN
exec redlock-cli run "${arguments[@]}" -- bash --noprofile --norc -eo pipefail -c "$command"
