#!/usr/bin/env bats
# status --runs: the runs that the servers keep, of all servers together.
load helper/common

setup() {
  setup_one_server
  # However busy this machine is, no server is given up.
  export REDLOCK_SERVER_TIMEOUT=4s
}

# run_noted NOTE…: a run for each note, one after the other.
run_noted() {
  local note
  for note; do redlock-cli run -k demo -q --note "$note" -- true; done
}

# notes [OPTION…]: the notes of the runs that are shown, the latest first.
notes() {
  redlock-cli status demo --json --runs "$@" |
    jq -r '[.locks[0].runs[].note] | join(" ")'
}

@test "status --runs shows when, where, by whom, how long and how it ended, the latest first" {
  run -0 redlock-cli status demo --runs
  assert_output $'demo: free\n  no runs are known'
  run -0 redlock-cli run -k demo --note 'release 4' -- true
  run -3 redlock-cli run -k demo -- sh -c 'exit 3'
  run -143 redlock-cli run -k demo -- sh -c 'kill -TERM $$'
  run -0 redlock-cli status demo --runs
  assert_equal "${#lines[@]}" 4
  local who at held
  who="$(id -un)@$(hostname)"
  at='^  [0-9.ms]+ ago, at [0-9:]{8}: '
  held='\(waited [0-9.ms]+, held [0-9.ms]+'
  assert_regex "${lines[1]}" "$at$who \(sh\) $held, signal 15\)\$"
  assert_regex "${lines[2]}" "$at$who \(sh\) $held, exit 3\)\$"
  assert_regex "${lines[3]}" "$at$who \(true\), \"release 4\" $held, exit 0\)\$"
  run -0 redlock-cli status demo --runs 1
  assert_equal "${#lines[@]}" 2
  assert_regex "${lines[1]}" "signal 15"
}

@test "they are shown while the lock is held, too, and in JSON with the id of each lease" {
  run_noted one two
  hold ours
  run -0 redlock-cli status demo --runs
  assert_line --partial "held by"
  assert_line --partial '"two"'
  assert_equal "$(notes)" "two one"
  run -0 redlock-cli status demo --runs --json
  assert_equal "$(json '[len(run["lease_id"]) for run in j["locks"][0]["runs"]]')" "[40, 40]"
  release_hold ours
}

@test "a note cannot break its line" {
  run_noted $'one\ntwo \e[2J "three"' four
  run -0 redlock-cli status demo --runs
  assert_equal "${#lines[@]}" 3
  assert_line --partial '"one\ntwo \x1b[2J "three""'
}

@test "the last twenty are kept" {
  local -a all
  mapfile -t all < <(seq 1 23)
  run_noted "${all[@]}"
  assert_equal "$(notes)" "$(seq -s ' ' 23 -1 4)"
  assert_equal "$(notes 3)" "23 22 21"
  assert_refused 64 "at least 1" redlock-cli status demo --runs=0
  assert_refused 64 "from 1 to 20" redlock-cli status demo --runs=21
  assert_refused 64 "needs KEY" redlock-cli status --runs
}

@test "what --min-hold, --once-per and shares do is one run each" {
  run -0 redlock-cli run -k demo --note once --once-per 20h -- true
  run -0 redlock-cli run -k demo --note kept --min-hold 1ms -- true
  run -0 redlock-cli run -k demo --note fresh --once-per 20h -- true
  run -0 redlock-cli run -k demo --note outer --slots 2 -- \
    redlock-cli run -k demo --note inner --slots 2 -- true
  run -0 redlock-cli run -k demo --note shared -s -- true
  # The inner one inherits the slot of the outer.
  assert_equal "$(notes)" "shared outer kept once"
}

# bats test_tags=redis
@test "an older version that records a run forgets those before, and all goes on" {
  run_noted one two three
  # It keeps three lines, and knows no more.
  local record
  record=$(redis 0 get 'redlock:last:{demo}' | head -n 3)
  redis 0 set 'redlock:last:{demo}' "$record" px 100000 >/dev/null
  assert_equal "$(notes)" three
  run_noted four five
  assert_equal "$(notes)" "five four three"
}

# bats test_tags=redis
@test "a server that missed runs is no gap: all servers together are shown, by fence" {
  start_servers 2
  export REDLOCK_SERVER=$SERVERS REDLOCK_RESTART_GUARD=0
  local nr
  run -0 redlock-cli run -k demo --note one -- "$(granted_by_all)" true
  for nr in 0 1 2; do
    wait_for_key "$nr" 'redlock:last:{demo}'
    redis "$nr" config set lua-time-limit 1 >/dev/null
  done
  make_busy 2
  run_noted two three four
  end_busy 2
  make_busy 0
  run_noted five six
  end_busy 0
  kill_server 1
  assert_equal "$(notes)" "six five four three two one"
}

# bats test_tags=redis
@test "a user that may not read the record is told so" {
  run_noted one
  redis 0 acl setuser narrow on nopass '~demo' '~redlock:[^l]*' '&*' +@all >/dev/null
  run -0 redlock-cli status demo --user narrow --runs
  assert_line --partial "runs not shown: the user may not touch the key"
}
