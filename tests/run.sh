#!/usr/bin/env bash
# Builds redlock-cli and shows that it works; the last line says `N passed, N failed`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
. packaging/dependencies.sh
umask 022

usage() {
  cat <<'END'
usage: tests/run.sh [quick | all | --only PART]

Installs the packages that are missing, builds preset ci, and shows that the program works: the unit
tests, all bats files, the documents, the rules of the tree and 200 schedules of the simulation.

  quick  builds preset dev and runs the unit tests, 200 schedules of the simulation and a few bats
         tests: a minute or two when nothing else is to be done; for those who change a line
  all    what CI runs: all parts but the last three, some beside each other
  --only PART
         ci asan servers plain user load clangd fuzz asan-bats tsan

  ci     builds preset ci, runs all tests; in `all` without the unit tests, which asan has
  asan   builds preset asan (Clang: AddressSanitizer, UndefinedBehaviorSanitizer, libFuzzer), runs
         the unit tests, and every fuzz target for three seconds; in `all` not optimised, with fewer
         checks, and without lines in reports
  servers  the tests of what goes over the wire once more, with the newest Redis and the newest
         Valkey that Debian has; in `all` with one of them, the other the next day
  plain  builds the program without a preset, as a distribution does, each source by itself, with
         GCC and with Clang; each counts as a test; in `all` with Clang, which does not optimise
         then
  user   when root: the bats tests of ci once more as an ordinary user without a home, but for those
         to which the user does not matter
  load   the tests that load the machine, when root as both users at once: by themselves, last
  clangd  that an editor with clangd shows no error that is none; in `all` in one source of each
         folder, another each day
  fuzz   only on demand: the fuzz targets of asan alone
  asan-bats  only on demand: the bats tests with the program of preset asan; a report of any
         process is a failure
  tsan   only on demand: builds preset tsan (ThreadSanitizer), runs the tests labelled unit or
         smoke; a report of any process is a failure
END
}

# What to run: a part, or one of:
what=works
case "$#,${1-}" in
  0,) ;;
  1,-h | 1,--help)
    usage
    exit
    ;;
  1,quick | 1,all) what=$1 ;;
  2,--only)
    if [[ ! $2 =~ ^(ci|asan|fuzz|servers|plain|user|load|clangd|asan-bats|tsan)$ ]]; then
      echo "run.sh: no such part: $2" >&2
      usage >&2
      exit 64
    fi
    what=$2
    ;;
  *)
    usage >&2
    exit 64
    ;;
esac

readonly sanitized=(-L '^(unit|fuzz)$')
# Whether it works: all kinds of tests but those that repeat what these show.
readonly works=(-L '^(unit|bats|tree|quick)$' -LE '^local$')
readonly load=(-R '^bats\.load$')
readonly all_but_load=(-E '^bats\.load$')

# nobody, by the number that Debian gives it.
readonly ORDINARY_UID=65534

# Whether /proc hides other users' processes from an ordinary user (hidepid).
proc_hides_processes() {
  local ordinary=()
  ((EUID != 0)) ||
    ordinary=(setpriv --reuid "$ORDINARY_UID" --regid "$ORDINARY_UID" --clear-groups)
  "${ordinary[@]}" test -r / && ! "${ordinary[@]}" test -r /proc/1/stat
}
if proc_hides_processes; then
  echo "run.sh: /proc hides other users' processes here (hidepid): tests that must see them are skipped"
fi

jobs=$(nproc)
# Most tests wait for something most of the time.
test_jobs=$((6 * jobs))
passed=0
failed=0
summary=()
work=$(mktemp -d)
user_tmp=
user_is_ready=
# The parts that run in the background, and their process groups.
declare -A running=()

# Whatever ends us: what goes on in the background ends, too.
clean_up() {
  local part
  for part in "${!running[@]}"; do
    has_ended "$part" || kill -- "-${running[$part]}" 2>/dev/null || true
  done
  wait
  rm -rf "$work" ${user_tmp:+"$user_tmp"}
}
trap clean_up EXIT

# What became of a part: one line at the end.
note() { summary+=("$(printf '%-9s %s' "$1" "$2")"); }

# headline TEXT: prints it, and how long this has been running.
headline() { printf '\n== %s (%d:%02d)\n' "$1" $((SECONDS / 60)) $((SECONDS % 60)); }

# A part that could not be tested at all counts as one failure.
fail_part() {
  failed=$((failed + 1))
  note "$1" "FAILED: $2"
}

# Counts what a ctest run wrote: tests that ran and passed, the rest, and every skip inside a test
# that passed. What the failed ones said is kept for the end.
count_results() {
  /usr/bin/python3 - "$1" "$work/failures" <<'END'
import re, sys, xml.etree.ElementTree as tree
failures = open(sys.argv[2], "a")
passed, failed, skipped, told_by_faults = 0, [], [], []
def how_many(output):  # a program of unit tests says how many passed; anything else is one test
    return sum(map(int, re.findall(r"^\[  PASSED  \] (\d+) tests?\.", output, re.M))) or 1
def told(output):  # of a failure: what bats or gtest says of each test that failed, or the end
    return re.findall(r"^not ok .*\n(?:#.*\n)*", output, re.M) or \
        re.findall(r"^\[ RUN      \] .*\n(?:(?!\[ RUN |\[       OK ).*\n)*?\[  FAILED  \] .*\n",
                   output, re.M) or [output[-4000:]]
for case in tree.parse(sys.argv[1]).iter("testcase"):
    name, output = case.get("name"), case.findtext("system-out") or ""
    if case.get("status") == "run":
        passed += how_many(output)
        if name.startswith("faults."):
            told_by_faults += re.findall(r"^faults: .*", output, re.M)
        skipped += [f"{name}: {line}"
                    for line in re.findall(r"^ok \d+ (.*# skip.*)", output, re.M | re.I)]
        skipped += [f"{name}: {line}"
                    for line in re.findall(r"^\[  SKIPPED \] (\S+) \(", output, re.M)]
    elif case.find("skipped") is not None and case.get("status") == "notrun" and \
            "SKIP" in (case.find("skipped").get("message") or ""):
        skipped.append(name)
    else:
        failed.append(f"{name} ({case.get('status')})")
        failures.writelines(f"\n== failed: {name}\n{text}" for text in told(output))
print(passed, len(failed), len(skipped))
for line in told_by_faults: print(" ", line)
for line in skipped: print("  skipped:", line)
for line in failed: print("  failed:", line)
END
}

# start_ctest PART [COMMAND…] -- CTEST-ARGUMENT…: runs ctest, under COMMAND if there is one; its
# results are for enter_results.
start_ctest() {
  local part=$1 before=()
  shift
  while [[ $1 != -- ]]; do
    before+=("$1")
    shift
  done
  shift
  # Where an ordinary user may write too.
  mkdir -p "$work/junit"
  chmod 755 "$work"
  chmod 1777 "$work/junit"
  # The output of passed tests is kept: it tells what was skipped inside them.
  "${before[@]}" ctest "$@" -j "$test_jobs" --output-on-failure --no-tests=error \
    --test-output-size-passed 10000000 \
    --output-junit "$work/junit/$part.xml"
}

# enter_results PART STATUS: the numbers of a ctest that ended with STATUS.
enter_results() {
  local part=$1 status=$2 junit=$work/junit/$1.xml counts run_passed run_failed run_skipped
  if [[ ! -s $junit ]] || ! counts=$(count_results "$junit"); then
    fail_part "$part" "ctest exited with $status and left no results"
    return
  fi
  read -r run_passed run_failed run_skipped <<<"$counts"
  if ((run_passed + run_failed == 0)); then
    fail_part "$part" "no tests at all"
    return
  fi
  # ctest may know of a failure that the results don't show.
  ((status == 0 || run_failed > 0)) || run_failed=1
  passed=$((passed + run_passed))
  failed=$((failed + run_failed))
  note "$part" "$run_passed passed, $run_failed failed, $run_skipped skipped"
  local line
  while IFS= read -r line; do summary+=("    $line"); done < <(tail -n +2 <<<"$counts")
}

# Both, one after the other.
run_ctest() {
  local status=0
  headline "test $1"
  start_ctest "$@" || status=$?
  enter_results "$1" "$status"
}

# begin PART COMMAND…: runs it in the background, until await or finish.
begin() {
  local part=$1
  shift
  set -m # in a process group of its own
  note_status "$work/$part.status" "$@" >"$work/$part.log" 2>&1 &
  running[$part]=$!
  set +m
}

# note_status FILE COMMAND…: for await. A shell forgets how its child ended once another has the
# same pid, and tests start enough processes for that.
note_status() {
  local status=0
  "${@:2}" || status=$?
  echo "$status" >"$1"
}

# Whether a part in the background has ended: then its pid may be another's.
has_ended() { [[ -s $work/$1.status ]]; }

# await PART: until it has ended; shows what it printed, and returns its status.
await() {
  local part=$1 status
  has_ended "$part" || wait "${running[$part]}" || true
  read -r status <"$work/$part.status" || status=1
  unset "running[$part]"
  headline "$part, in the background"
  cat "$work/$part.log"
  return "$status"
}

# Waits for all parts in the background.
finish() {
  local part status
  for part in "${!running[@]}"; do
    status=0
    await "$part" || status=$?
    case $part in
      plain | clangd) enter_counts "$part" ;;
      *) enter_results "$part" "$status" ;;
    esac
  done
}

# build PRESET [--target TARGET]: each preset once: configuring writes ctest's lists anew, under the
# eyes of a ctest that runs beside. configuration[PRESET] is one more argument for CMake.
declare -A built=() configuration=()
build() {
  [[ -z ${built[$PWD/$1]-} ]] || return "${built[$PWD/$1]}"
  built[$PWD/$1]=1
  headline "build $1"
  cmake --preset "$1" ${configuration[$1]+"${configuration[$1]}"} \
    >"$work/configure.$1.log" 2>&1 || {
    cat "$work/configure.$1.log"
    return 1
  }
  cmake --build --preset "$@" -j "$jobs" || return
  built[$PWD/$1]=0
}

# build_for PART PRESET [--target TARGET]: no build, no tests.
build_for() {
  build "${@:2}" && return
  fail_part "$1" "the build failed"
  return 1
}

# build_side_by_side PRESET PRESET: each has steps that wait for one other. Not beside tests: Clang
# took a quarter longer there. Whoever tests what failed to build says so.
build_side_by_side() {
  begin "build-$2" build "$2"
  build "$1" || true
  local status=0
  await "build-$2" || status=$?
  built[$PWD/$2]=$status
}

# run_preset PART PRESET CTEST-ARGUMENT…
run_preset() {
  local part=$1 preset=$2
  shift 2
  build_for "$part" "$preset" || return 0
  run_ctest "$part" -- --test-dir "build/$preset" "$@"
}

begin_asan() {
  local test_jobs=$jobs # they keep a processor busy, unlike most of what is tested in front
  build_for asan asan || return 0
  begin asan start_ctest asan -- --test-dir build/asan "${sanitized[@]}"
}

# run_with_reports PART PRESET CTEST-ARGUMENT…: a report of a sanitizer, of any process, is a
# failure, whatever the test makes of it. Signals that a test sends are no reports, and what is
# ignored stays ignored. Leaks are what the unit tests of asan and memcheck.sh look for: here a
# process may end with what it has.
run_with_reports() {
  local part=$1 preset=$2 reports=$work/reports.$1 options report
  shift 2
  mkdir -m 1777 "$reports"
  options=detect_leaks=0:handle_segv=0:handle_sigbus=0:handle_sigfpe=0:log_path=$reports/report
  run_ctest "$part" env ASAN_OPTIONS="$options" TSAN_OPTIONS="$options" \
    UBSAN_OPTIONS="$options:print_stacktrace=1" -- --test-dir "build/$preset" "$@"
  for report in "$reports"/*; do
    [[ -e $report ]] || continue
    fail_part "$part" "a report of a sanitizer"
    {
      printf '\n== a report of a sanitizer\n'
      cat "$report"
    } >>"$work/failures"
  done
}

run_asan_bats() {
  build_for asan-bats asan --target bats-programs || return 0
  run_with_reports asan-bats asan -L '^bats$'
}

run_tsan() {
  build_for tsan tsan || return 0
  run_with_reports tsan tsan -L '^(unit|smoke)$'
}

# What a server has the largest part in: how it reads, what it drops, when it refuses.
readonly wire_files='fence|frozen_server|lost_data|queue|refused_release|replicas|same_server'
readonly wire_suites='Scripts*:Rights*'
wire_preset=ci

# test_server NAME DIRECTORY: with the programs in DIRECTORY.
test_server() {
  local test_jobs=$((2 * jobs))
  "$2/redis-server" --version || return
  local program=$root/build/$wire_preset/tests/unit/unit-redis
  # A directory of its own, for ctest's logs.
  mkdir -p "$work/$1"
  cat >"$work/$1/CTestTestfile.cmake" <<END
subdirs("$root/build/ci")
add_test(wire timeout 300 "$program" "--gtest_filter=$wire_suites")
set_tests_properties(wire PROPERTIES TIMEOUT 360 FAIL_REGULAR_EXPRESSION "PASSED  . 0 tests")
END
  start_ctest "$1" env PATH="$2:$PATH" -- --test-dir "$work/$1" -R "^(wire|bats\.($wire_files))$"
}

readonly servers=(redis valkey)

# of_today WORD…: one of them, the next one tomorrow.
of_today() {
  local words=("$@")
  echo "${words[$(date +%s) / 86400 % $#]}"
}

# begin_servers NAME…
begin_servers() {
  local server bin
  build_for servers ci && build_for servers "$wire_preset" || return 0
  (cd build/ci && ctest -N >/dev/null) || true # writes the lists of unit tests
  for server in "$@"; do
    if bin=$(tests/servers.sh "$server"); then
      begin "$server" test_server "$server" "$bin"
    else
      note "$server" \
        "SKIPPED: the mirror does not give us Debian's newest now, and no earlier one is left"
    fi
  done
}

# Beside tests, which it must not hold up.
begin_plain() { begin plain nice -n 10 tests/plain_build.sh "$@"; }

# begin_clangd [--sample]: what it reads is what preset dev compiles.
begin_clangd() { begin clangd check_clangd "$@"; }

check_clangd() {
  cmake --preset dev >/dev/null &&
    cmake --build --preset dev --target redlock-protocol redlock-build >/dev/null &&
    nice -n 10 tests/clangd.py "$@"
}

# enter_counts PART: the numbers in the last line of what it printed.
enter_counts() {
  local counts run_passed run_failed
  counts=$(sed -n '$s/^\([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$work/$1.log")
  if [[ -z $counts ]]; then
    fail_part "$1" "it did not come to its end"
    return
  fi
  read -r run_passed run_failed <<<"$counts"
  passed=$((passed + run_passed))
  failed=$((failed + run_failed))
  note "$1" "$run_passed passed, $run_failed failed, 0 skipped"
}

# Everything that an ordinary user is not: no rights, no groups, no home, and no environment but
# PATH and a place for files.
as_user() {
  setpriv --reuid "$ORDINARY_UID" --regid "$ORDINARY_UID" --clear-groups --inh-caps=-all \
    env -i PATH="$PATH" TMPDIR="$user_tmp" "$@"
}

make_user_directory() {
  [[ -z $user_tmp ]] || rm -rf "$user_tmp"
  user_tmp=$(mktemp -d /tmp/rl-user.XXXXXX) && mkdir "$user_tmp/ctest" &&
    chown "$ORDINARY_UID:$ORDINARY_UID" "$user_tmp" "$user_tmp/ctest"
}

# prepare_user PART: sees to it that an ordinary user can run the tests of ci, in
# $user_tmp/ctest. Fails when there is nothing to run, which it notes.
prepare_user() {
  if ((EUID != 0)); then
    note "$1" "not root: all parts ran as an ordinary user already"
    return 1
  fi
  [[ -z $user_is_ready ]] || return 0
  build_for "$1" ci || return
  if ! make_user_directory; then
    fail_part "$1" "there is no directory for the user"
    return 1
  fi
  local tree=$root
  if ! as_user test -r "$root/build/ci/CTestTestfile.cmake" -a -r "$root/tests/bats"; then
    echo "the user cannot read $root: building a copy"
    tree=$user_tmp/copy
    if ! { mkdir "$tree" &&
      tar -c --exclude=./build --exclude=./.git . | tar -x -C "$tree" &&
      chmod -R a+rX "$tree" &&
      (cd "$tree" && build ci); }; then
      fail_part "$1" "the build of a copy failed"
      return 1
    fi
  fi
  # Lets ctest write its lists of unit tests, which it does at its first start, while it still may.
  (cd "$tree" && ctest --test-dir build/ci -N >/dev/null) || true
  # The same tests, seen from a directory in which the user may write logs.
  printf 'subdirs("%s")\n' "$tree/build/ci" >"$user_tmp/ctest/CTestTestfile.cmake"
  user_is_ready=yes
}

begin_user() {
  local test_jobs=$((3 * jobs))
  prepare_user user || return 0
  begin user start_ctest user as_user -- --test-dir "$user_tmp/ctest" \
    -L '^bats$' -LE '^(local|any_user)$' "${all_but_load[@]}"
}

# It would hold up the servers of all other tests.
run_load() {
  finish
  if prepare_user user-load; then
    begin user-load start_ctest user-load as_user OTHER_LOAD=1 -- \
      --test-dir "$user_tmp/ctest" "${load[@]}"
  fi
  run_preset load ci "${load[@]}"
}

# run WHAT
run() {
  case $1 in
    works) run_preset works ci "${works[@]}" ;;
    quick) run_preset quick dev -L '^(unit|quick)$' ;;
    ci) run_preset ci ci ;;
    asan) run_preset asan asan "${sanitized[@]}" ;;
    fuzz) run_preset asan asan -L '^fuzz$' ;;
    asan-bats) run_asan_bats ;;
    tsan) run_tsan ;;
    servers) begin_servers "${servers[@]}" ;;
    plain) begin_plain ;;
    user) begin_user ;;
    load) run_load ;;
    clangd) begin_clangd ;;
    all)
      # asan has the unit tests.
      configuration[ci]=-DREDLOCK_UNIT_TESTS=OFF
      configuration[asan]=-DREDLOCK_FAST_SANITIZERS=ON
      wire_preset=asan
      build_side_by_side ci asan
      begin_asan
      begin_user
      begin_servers "$(of_today "${servers[@]}")"
      # Reading headers is most of it: GCC takes 400 s of processor time, Clang without an optimiser
      # 150, and misses no header that GCC would miss.
      OPTIMIZE=-O0 begin_plain clang++
      begin_clangd --sample
      run_preset ci ci "${all_but_load[@]}"
      run_load
      ;;
  esac
  finish
}

if ensure_test_packages; then
  run "$what"
else
  fail_part setup "packages are missing"
fi

headline summary
printf '%s\n' "${summary[@]}"
[[ ! -s $work/failures ]] || cat "$work/failures"
echo "$passed passed, $failed failed"
((failed == 0 && passed > 0))
