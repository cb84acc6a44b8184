#!/usr/bin/env bats
# status --runs: the runs that the servers have recorded, merged over all servers.
load helper/common

setup() {
  setup_one_server
  # Even on a busy machine no server may time out.
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
  assert_output $'demo: free\n  no runs are recorded'
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

@test "they are also shown while the lock is held, and in JSON with the id of each lease" {
  run_noted one two
  hold ours
  run -0 redlock-cli status demo --runs
  assert_line --partial "held by"
  assert_line --partial '"two"'
  assert_equal "$(notes)" "two one"
  run -75 redlock-cli run -k demo -n --record-skips -- true
  run -0 redlock-cli status demo --runs --json
  /usr/bin/python3 "$BATS_TEST_DIRNAME/helper/valid_output.py" <<<"$output"
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
  assert_refused 64 "needs KEY; \`redlock-cli status --all\` shows the last run of each free lock" \
    redlock-cli status --runs
}

@test "a run with --min-hold, --once-per or a share counts as one run" {
  run -0 redlock-cli run -k demo --note once --once-per 20h -- true
  run -0 redlock-cli run -k demo --note kept --min-hold 1ms -- true
  run -0 redlock-cli run -k demo --note fresh --once-per 20h -- true
  run -0 redlock-cli run -k demo --note outer --slots 2 -- \
    redlock-cli run -k demo --note inner --slots 2 -- true
  run -0 redlock-cli run -k demo --note shared -s -- true
  # The inner one inherits the slot of the outer.
  assert_equal "$(notes)" "shared outer kept once"
}

skips() { redlock-cli status demo --json | jq -c '.locks[0].skips | [.count, .why]'; }

@test "--record-skips counts skipped runs until the next run, and records no run itself" {
  run_noted one
  hold ours
  run -75 redlock-cli run -k demo -n --record-skips -- true
  run -75 redlock-cli run -k demo -w 0 --record-skips -- true
  run -75 redlock-cli run -k demo -n -- true
  assert_equal "$(skips) $(notes)" '[2,"busy"] one'
  run -0 redlock-cli status demo
  assert_line --regexp '^  skipped at least 2 times since [0-9:]{8} \(busy\)$'
  run -0 redlock-cli status demo --openmetrics
  assert_line 'redlock_lock_skips{key="demo"} 2'
  release_hold ours
  assert_equal "$(skips)" '[null,null]'
  run -0 redlock-cli status demo --openmetrics
  assert_line 'redlock_lock_skips{key="demo"} 0'
}

@test "--record-skips counts what --once-per skipped, and leaves the success unchanged" {
  run_noted one
  local success='.locks[0].last_success | del(.started_ago_ms, .ended_ago_ms)' before
  before=$(redlock-cli status demo --json | jq "$success | .fence")
  run -0 redlock-cli run -k demo --once-per 20h --record-skips -- false
  assert_equal "$(skips) $(notes)" '[1,"fresh"] one'
  run -0 redlock-cli status demo --runs
  assert_line --regexp '^  skipped at least once since [0-9:]{8} \(fresh\)$'
  assert_equal "$(redlock-cli status demo --json | jq "$success | .fence")" "$before"
  run -0 redlock-cli status demo --max-age 1h
  run -0 redlock-cli run -k demo --once-per 20h --record-skips -- false
  assert_equal "$(skips)" '[2,"fresh"]'
}

@test "--record-skips counts before any run exists, and does not count other failures" {
  hold ours
  run -75 redlock-cli run -k demo -n --record-skips -- true
  assert_equal "$(skips) $(notes)" '[1,"busy"] '
  run -0 redlock-cli status demo --max-held 1h
  release_hold ours
  run -127 redlock-cli run -k demo --record-skips -- ./is-not-there
  assert_equal "$(skips)" '[null,null]'
}

# bats test_tags=redis
@test "--record-skips changes nothing else without the right to the last runs" {
  redis 0 acl setuser narrow on nopass '~demo' '~redlock:[^l]*' '&*' +@all >/dev/null
  hold ours
  run -75 --separate-stderr redlock-cli run -k demo --user narrow -n -q --record-skips -- true
  assert_equal "$output$stderr" ""
  release_hold ours
}

# bats test_tags=redis
@test "a server that missed runs leaves no gap: the runs of all servers are merged by fence" {
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
@test "a user who may not read the record is told so" {
  run_noted one
  redis 0 acl setuser narrow on nopass '~demo' '~redlock:[^l]*' '&*' +@all >/dev/null
  run -0 redlock-cli status demo --user narrow --runs
  assert_line --partial "runs not shown: the user lacks access to the key"
}

@test "a skip changes nothing that --once-per reads: it is no run" {
  local before
  run -0 redlock-cli run -k demo --once-per 1h -- true
  before=$(redis 0 get 'redlock:last:{demo}' | head -n 3)
  [[ -n $before ]]
  run -0 redlock-cli run -k demo --once-per 1h --record-skips -- false
  assert_regex "$(redlock-cli status demo --runs)" "skipped at least once"
  assert_equal "$(redis 0 get 'redlock:last:{demo}' | head -n 3)" "$before"
}
