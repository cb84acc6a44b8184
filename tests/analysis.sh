#!/usr/bin/env bash
# Static analysis of src: clang-tidy, Clang's analyzer, cppcheck and GCC's -fanalyzer. Any finding
# is a failure.
# On demand: `cmake --build --preset dev --target check-analysis`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. packaging/dependencies.sh

usage() {
  cat <<'END'
usage: tests/analysis.sh [--only clang-tidy|analyzer|cppcheck|fanalyzer]

Installs the packages that are missing, and looks at src with each of the tools, or with one:
  clang-tidy  with .clang-tidy, which says what is left out and why
  analyzer    Clang's static analyzer, which clang-tidy runs, a source at a time
  cppcheck    with tests/analysis/cppcheck.txt, which says the same
  fanalyzer   GCC's -fanalyzer, for what it can do in C++: this script says why
Prints what they find. Fails when that is anything. Builds in build/analysis. Clang's analyzer takes
half an hour of a processor, the others some three minutes.
END
}

tools=(clang-tidy analyzer cppcheck fanalyzer)
case "$#,${1-}" in
  0,) ;;
  1,-h | 1,--help)
    usage
    exit
    ;;
  2,--only)
    if [[ ! $2 =~ ^(clang-tidy|analyzer|cppcheck|fanalyzer)$ ]]; then
      echo "analysis.sh: no such tool: $2" >&2
      usage >&2
      exit 64
    fi
    tools=("$2")
    ;;
  *)
    usage >&2
    exit 64
    ;;
esac

ensure_packages "${BUILD_PACKAGES[@]}" clang clang-tidy cppcheck jq
jobs=$(nproc)

# configure NAME ARGUMENT…: a build directory, with the headers that the build makes. Precompiled
# headers are the compiler's own.
configure() {
  local build=build/analysis/$1
  shift
  cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DBUILD_TESTING=OFF \
    -DREDLOCK_PCH=OFF "$@" >/dev/null &&
    cmake --build "$build" --target redlock-protocol redlock-build >/dev/null
}

# entries NAME: what is compiled there, one JSON object a line, without the sources that the build
# makes: they are data.
entries() {
  jq -c --arg src "$PWD/src/" \
    '.[] | select(.file | startswith($src) or contains("/Unity/"))' \
    "build/analysis/$1/compile_commands.json"
}

# A batch of sources for each layer: headers are most of what there is to read.
readonly batches=(-DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=50)

# clang_tidy NAME CHECKS: of what is compiled in that build directory, with those changes to the
# checks of .clang-tidy.
clang_tidy() {
  # How much it has left out in libraries is no finding.
  entries "$1" | jq -r .file |
    xargs -P "$jobs" -d '\n' -n 1 clang-tidy -p "build/analysis/$1" --quiet \
      --warnings-as-errors='*' --checks="$2" \
      2> >(sed '/^[0-9]* warnings\{0,1\} generated\.$/d' >&2)
}

run_clang_tidy() {
  configure clang -DCMAKE_CXX_COMPILER=clang++ "${batches[@]}" || return
  # That a batch includes sources is no finding.
  clang_tidy clang '-clang-analyzer-*,-bugprone-suspicious-include'
}

# Without batches: it takes included sources for headers, of which it looks at no function.
run_analyzer() {
  configure clang-sources -DCMAKE_CXX_COMPILER=clang++ || return
  local others=(bugprone cppcoreguidelines google misc modernize performance readability)
  clang_tidy clang-sources "$(printf ',-%s-*' "${others[@]}")"
}

run_cppcheck() {
  configure gcc -DCMAKE_CXX_COMPILER=g++ "${batches[@]}" || return
  cppcheck -q -j "$jobs" --language=c++ --std=c++20 -I src -I build/analysis/gcc/src \
    --enable=warning,performance,portability,style \
    --suppressions-list=tests/analysis/cppcheck.txt --inline-suppr \
    --template='{file}:{line}: {severity}: {message} [{id}]' --error-exitcode=1 src
}

# GCC 12 analyses C. Of C++ it does not know that operator new never returns null, nor what is in
# the frame of a coroutine, nor when a destructor runs. What is left is what our calls of C may get
# wrong: a double free, a use after it, a handler of a signal that calls what it must not. So it
# looks at the two layers that make most such calls; others take it many minutes. In a batch, one
# source's local name may shadow another's.
run_fanalyzer() {
  local flags=(-fanalyzer -fdiagnostics-plain-output -fanalyzer-verbosity=0 -O1 -S -o /dev/null
    -Werror -Wno-shadow
    -Wno-analyzer-possible-null-dereference -Wno-analyzer-null-dereference
    -Wno-analyzer-possible-null-argument -Wno-analyzer-null-argument
    -Wno-analyzer-use-of-uninitialized-value -Wno-analyzer-malloc-leak)
  configure gcc -DCMAKE_CXX_COMPILER=g++ "${batches[@]}" || return
  entries gcc |
    jq -r --arg flags "${flags[*]}" \
      'select(.file | test("redlock-(child|support)\\.dir")) |
       "cd \(.directory) && \(.command | sub(" -o [^ ]+ -c "; " -c ")) \($flags)"' |
    xargs -P "$jobs" -d '\n' -n 1 bash -c
}

status=0
for tool in "${tools[@]}"; do
  echo "== $tool"
  case $tool in
    clang-tidy) run_clang_tidy ;;
    analyzer) run_analyzer ;;
    cppcheck) run_cppcheck ;;
    fanalyzer) run_fanalyzer ;;
  esac && echo "nothing found" || status=1
done
exit "$status"
