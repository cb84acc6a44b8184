#!/usr/bin/env bats
# The habits of flock(1) and redis-cli, and --force: each first guess is refused with the right line.
load helper/common

setup() { setup_one_server; }

@test "a line of flock(1) without run leads to run: 64" {
  local words
  local -a flock
  for words in '-u 9' '-F x true' '-o x true' '-ox x true' '-xo x true' '--fcntl x true' flock \
    'help flock' '/var/lock/x true' './x true'; do
    read -ra flock <<<"$words"
    assert_refused 64 "; \`redlock-cli run -k KEY CMD\` runs a command under a lock" \
      redlock-cli "${flock[@]}"
    assert_regex "$stderr" "coming from flock\\(1\\): docs/migration.md"
  done
  [[ -e $BATS_TEST_DIRNAME/../../docs/migration.md ]]
  assert_refused 64 "unknown option --jobs; with run it is --slots" redlock-cli --jobs 4 make
  assert_refused 64 "unknown option --leader; \`redlock-cli run -k KEY CMD\` runs a command on one" \
    redlock-cli --leader
}

@test "redis-cli's -h HOST is no request for help, and runs nothing: 64" {
  local ran=$BATS_TEST_TMPDIR/ran
  assert_refused 64 "-h is help; a server is -S redis://localhost:6379" \
    redlock-cli run -h localhost -k deploy -- touch "$ran"
  assert_refused 64 "-h is help; a server is -S redis://localhost:6379" \
    redlock-cli -h localhost run -k deploy -- touch "$ran"
  assert [ ! -e "$ran" ]
  assert_equal "$(redlock-cli run -h)" "$(redlock-cli run --help)"
}

@test "redis-cli's -u URL and -s SOCKET lead to -S: 64, or 127 where a command could stand" {
  assert_refused 64 ": -S redis://localhost:6379" \
    redlock-cli run -u redis://localhost -k deploy -- true
  assert_refused 64 ": -S redis://localhost:6379" \
    redlock-cli -u redis://localhost run -k deploy -- true
  assert_refused 64 "-k stands after the command /run/redis.sock: options come before the command; \
a server is -S unix:///run/redis.sock (-s shares the lock)" \
    redlock-cli run -S unix:///run/redis.sock -s /run/redis.sock -k deploy -- ./deploy.sh
  assert_refused 64 "needs -k KEY: the name of the lock, before the command; a server is -S \
unix:///run/redis.sock" redlock-cli run -s /run/redis.sock -- ./deploy.sh
  assert_refused 127 "/no/redis.sock: not found; a server is -S unix:///no/redis.sock" \
    redlock-cli run -k deploy -s /no/redis.sock -- ./deploy.sh
}

@test "--force is explained where it does not exist, and no hint proposes it" {
  assert_refused 64 "--force is not an option of run; --replace stops an older run that has it, \
too, \`redlock-cli stop KEY\` stops any" redlock-cli run -k demo --force true
  local command
  for command in acquire hold extend status doctor; do
    assert_refused 64 "--force is not an option of $command; \`redlock-cli stop KEY\` ends the" \
      redlock-cli "$command" demo --force
  done
  assert_refused 64 "--force is not an option of stop; it kills what outlives --grace" \
    redlock-cli stop demo --force
  assert_regex "$stderr" "man redlock-cli-release$"
}

@test "the value of an unset variable is reported as empty: 64" {
  assert_refused 64 "--while-pid: is empty" redlock-cli acquire demo --while-pid ''
  assert_refused 64 "--slots: is empty" redlock-cli run -k demo --slots '' true
  assert_refused 64 "--conflict-exit-code: is empty" redlock-cli run -k demo -E '' true
}
