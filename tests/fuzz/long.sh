#!/usr/bin/env bash
# Runs every fuzz target for longer than ctest does, as many at once as there are processors.
#
# usage: tests/fuzz/long.sh DIRECTORY
#   DIRECTORY: where the targets are (build/asan/tests/fuzz). What they find worth keeping stays in
#   its folder `corpus`, where the next long run begins.
#   FUZZ_SECONDS: how long each target runs; by default all of them together take an hour
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
directory=$(cd "${1:?the directory with the targets}" && pwd)

targets=()
for source in "$here"/*_fuzz.cpp; do
  source=${source##*/}
  targets+=("${source%_fuzz.cpp}")
done
jobs=$(nproc)
seconds=${FUZZ_SECONDS:-$((3600 * jobs / ${#targets[@]}))}

run_target() {
  local name=$1 corpus=$directory/corpus/$1 log=$directory/$1.log
  mkdir -p "$corpus"
  if "$directory/fuzz-$name" -max_total_time="$seconds" -timeout=10 \
    -artifact_prefix="$directory/$name-" "$corpus" "$here/seeds/$name" >"$log" 2>&1; then
    printf '%-12s %s\n' "$name" "$(grep '^Done' "$log")"
  else
    printf '%-12s FAILED, see %s\n' "$name" "$log"
    tail -n 40 "$log" >&2
    return 1
  fi
}
export -f run_target
export directory here seconds

echo "${#targets[@]} targets, ${seconds}s each, $jobs at once"
printf '%s\n' "${targets[@]}" | xargs -P "$jobs" -I{} bash -c 'set -euo pipefail; run_target {}'
