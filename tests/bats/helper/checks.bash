# shellcheck shell=bash
# Common assertions about redlock-cli.

# assert_refused CODE TEXT CMD…: CMD exits with CODE, prints nothing on stdout, and one message with
# TEXT on stderr, without control characters.
assert_refused() {
  local code=$1 text=$2 said=$BATS_TEST_TMPDIR/refusal
  shift 2
  # As `run --separate-stderr` does it, without a mktemp for each of a thousand refusals.
  status=0
  output=$("$@" 2>"$said") || status=$?
  IFS= read -rd '' stderr <"$said" || true
  stderr=${stderr%$'\n'}
  if [[ $status != "$code" || -n $output || $stderr != "redlock-cli: "*"$text"* ||
    $stderr =~ [[:cntrl:]] ]]; then
    fail "$(
      printf 'command: %q' "$1"
      printf ' %q' "${@:2}"
      printf '\nwanted:  exit code %s and one line that says: %s\n' "$code" "$text"
      printf 'status:  %s\nstdout:  %q\nstderr:  %q\n' "$status" "$output" "$stderr"
    )"
  fi
}

# Uses every command in the life of a lock once, on the servers in REDLOCK_SERVER.
use_all_commands() {
  run -0 redlock-cli run -k demo -- true
  run -0 --separate-stderr redlock-cli acquire -k demo -t 60s --export
  eval "$output"
  run -0 redlock-cli extend -t 90s
  run -75 redlock-cli status -k demo --exit-code
  assert_line --partial "demo: held by"
  run -75 env -u REDLOCK_LEASE redlock-cli run -k demo -n -q -- true
  run -0 redlock-cli release
  unset REDLOCK_KEY REDLOCK_TOKEN REDLOCK_FENCE REDLOCK_LEASE
}

# assert_unlocked KEY I…: these servers have neither the lock nor its owner record. For keys without
# `}`. One of several servers may be slower than the process: it still has to read the release, or
# drops it and gets another.
assert_unlocked() {
  local key=$1 i
  shift
  (($#)) || fail "assert_unlocked: no server is named"
  if (($# > 1)); then
    for i; do wait_until is_without_clients "$i"; done
    for i; do wait_until is_unlocked "$i" "$key"; done
  fi
  for i; do assert_equal "server $i: $(lock_keys_at "$i" "$key")" "server $i: 0"; done
}
lock_keys_at() { redis "$1" exists "$2" "redlock:owner:{$2}"; }
is_unlocked() { [[ $(lock_keys_at "$1" "$2") == 0 ]]; }

# Whether only this call and Redis' own processes are connected to server I.
is_without_clients() {
  [[ $(redis "$1" client list type normal | grep -vc ' name=sentinel-') == 1 ]]
}

# assert_in_range NUMBER LOWEST HIGHEST
assert_in_range() { (($1 >= $2 && $1 <= $3)) || fail "$1 is not between $2 and $3"; }

# fence_at I KEY: the fence counter in server I.
fence_at() { redis "$1" get "redlock:fence:{$2}"; }

# json EXPRESSION: the value of a Python expression, in which `j` is the single line of JSON in
# $output.
json() {
  /usr/bin/python3 -ISc 'import json, sys; j = json.loads(sys.argv[1]); print(eval(sys.argv[2]))' \
    "$output" "$1"
}
