#!/usr/bin/env bash
# Builds one static program with musl instead of glibc, and runs tests/bats with it.
# usage: CC=… CXX=… tests/musl.sh [NAME…]
#   NAME…: which files of tests/bats; by default all that need nothing else of preset dev. Tests
#   with the tag glibc are left out: TLS, which a static program cannot load; the texts of the
#   system's errors; signal 34, which musl keeps for itself.
#   CC, CXX: compilers for musl with a C++ library, which Debian does not have. Zig has:
#   CC='zig cc -target x86_64-linux-musl' CXX='zig c++ -target x86_64-linux-musl'
# On demand. The libraries are built from Debian's sources, which come from the mirror that this
# machine's apt uses. What is built is the last commit.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
. packaging/dependencies.sh
. tests/clean_root.sh

[[ -n ${CC-} && -n ${CXX-} ]] || { sed -n '2,/^set/{/^#/s/^# \?//p}' "$0" >&2; exit 64; }
ensure_packages "${BUILD_PACKAGES[@]}" "${TEST_PACKAGES[@]}" dpkg-dev

work=$(mktemp -d)
chmod 755 "$work"
clean_up() { rm -rf --one-file-system "$work"; }
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
prefix=$work/prefix
mkdir -p "$prefix/lib/pkgconfig" "$prefix/include" "$work"/{sources,lists/partial,bin,src}

# One word each, as the build systems want it. What these compilers think of other people's headers
# says nothing of musl.
for language in CC CXX; do
  printf '#!/bin/sh\nexec %s -w "$@"\n' "${!language}" >"$work/bin/musl-$language"
done
chmod 755 "$work/bin"/*
export PATH=$work/bin:$PATH PKG_CONFIG_LIBDIR=$prefix/lib/pkgconfig
# Paths of this machine's own libraries have no place here.
unset LIBRARY_PATH CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH CC CXX

# quietly WHAT CMD…: as a job of its own, since behind || a function would go on after an error.
quietly() {
  echo "musl.sh: $1"
  "${@:2}" >"$work/log" 2>&1 &
  wait $! || { tail -n 30 "$work/log"; exit 1; }
}

# --- The libraries ---

fetch_sources() {
  local apt=(apt-get -q -o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=-
    -o "Dir::State::lists=$work/lists" -o Acquire::Check-Valid-Until=false
    -o APT::Sandbox::User=root)
  local suite
  # shellcheck source=/dev/null
  suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
  echo "deb-src $(mirror) $suite main" >"$work/sources.list"
  "${apt[@]}" update
  (cd "$work/sources" && "${apt[@]}" source hiredis lua5.1 libmd fmtlib)
}

# describe NAME VERSION LIBRARY FLAGS: for pkg-config.
describe() {
  printf '%s\n' "libdir=$prefix/lib" "includedir=$prefix/include" "Name: $1" "Description: $1" \
    "Version: $2" "Libs: -L\${libdir} $3" "Cflags: $4" >"$prefix/lib/pkgconfig/$1.pc"
}

# version_of LIBRARY: as in the name of its source directory.
version_of() { basename "$work/sources/$1"-[0-9]*/ | sed 's/.*-//; s/[+~].*//'; }

build_hiredis() {
  # 0.14 has functions whose types differ from what it stores them as.
  make -C "$work/sources"/hiredis-*/ libhiredis.a CC=musl-CC \
    CFLAGS='-O2 -fPIC -Wno-incompatible-function-pointer-types'
  mkdir "$prefix/include/hiredis"
  (cd "$work/sources"/hiredis-*/ && cp libhiredis.a "$prefix/lib/" &&
    cp ./*.h "$prefix/include/hiredis/")
  describe hiredis "$(version_of hiredis)" -lhiredis "-I$prefix/include/hiredis"
}

build_lua() (
  cd "$work/sources"/lua5.1-*/src
  # Debian's own, made by its build: where modules are looked for.
  printf '#define DEB_HOST_MULTIARCH "."\n#define LUA_ROOT "/usr/"\n' >lua5.1-deb-multiarch.h
  for source in l*.c; do
    [[ $source == lua.c || $source == luac.c ]] || musl-CC -O2 -fPIC -c "$source"
  done
  ar rcs "$prefix/lib/liblua5.1.a" ./*.o
  cp ./*.h ../etc/lua.hpp "$prefix/include/"
  describe lua5.1 "$(version_of lua5.1)" -llua5.1 ''
)

build_md() (
  cd "$work/sources"/libmd-*/
  ./configure --host="$(uname -m)-linux-musl" CC=musl-CC CFLAGS='-O2 -fPIC' --disable-shared \
    --prefix="$prefix"
  make install
)

build_fmt() {
  cmake -S "$work/sources"/fmtlib-*/ -B "$work/fmt" -G Ninja --toolchain "$work/toolchain.cmake" \
    -DCMAKE_BUILD_TYPE=Release -DFMT_TEST=OFF -DFMT_DOC=OFF -DCMAKE_INSTALL_PREFIX="$prefix"
  cmake --build "$work/fmt" --target install
}

# Those that are headers alone, and OpenSSL's, of which only the headers are needed.
copy_headers() {
  local files
  files=$(dpkg -L libasio-dev libcli11-dev nlohmann-json3-dev libexpected-dev libtomlplusplus-dev \
    libssl-dev | grep -E '^/usr/(include|share/cmake)/')
  while read -r file; do
    [[ -f $file ]] || continue
    local to=$prefix/${file#/usr/}
    to=${to/include\/*-linux-gnu\//include/}
    mkdir -p "${to%/*}"
    cp "$file" "$to"
  done <<<"$files"
  local name
  for name in openssl tomlplusplus; do
    describe "$name" "$(pkg-config-of-host --modversion "$name")" '' ''
  done
}
pkg-config-of-host() { env -u PKG_CONFIG_LIBDIR pkg-config "$@"; }

# The build runs tools that it has built, such as compile-scripts: `env` does so.
cat >"$work/toolchain.cmake" <<END
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR $(uname -m))
set(CMAKE_C_COMPILER $work/bin/musl-CC)
set(CMAKE_CXX_COMPILER $work/bin/musl-CXX)
set(CMAKE_FIND_ROOT_PATH $prefix)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_CROSSCOMPILING_EMULATOR env)
END

quietly "fetching the libraries' sources" fetch_sources
quietly "building hiredis" build_hiredis
quietly "building Lua" build_lua
quietly "building libmd" build_md
quietly "building fmt" build_fmt
quietly "copying headers" copy_headers

# --- The program ---

build_program() {
  git -C "$root" archive HEAD | tar -C "$work/src" -xf -
  cmake -S "$work/src" --preset release -B "$work/build" --toolchain "$work/toolchain.cmake" \
    -DBUILD_TESTING=OFF
  cmake --build "$work/build"
  strip -o "$work/bin/redlock-cli" "$work/build/src/redlock-cli"
}
quietly "building the program" build_program
program=$work/bin/redlock-cli
"$program" --version --verbose
headers=$(readelf --wide --program-headers "$program")
[[ $headers == *LOAD* && $headers != *INTERP* ]] || {
  echo "musl.sh: the program is not static" >&2
  exit 1
}

# --- The tests ---

# What a static program cannot do is load OpenSSL: it says so, and everything else works.
says_why_without_tls() {
  local status=0
  REDLOCK_SERVER=rediss://127.0.0.1:1 "$program" run -k a -n -- true 2>"$work/said" || status=$?
  cat "$work/said"
  ((status == 71)) && grep 'TLS needs OpenSSL, which cannot be loaded' "$work/said"
}
quietly "asking for TLS, which a static program has not" says_why_without_tls

names=("$@")
if (($# == 0)); then
  for name in tests/bats/*.bats; do
    name=$(basename "$name" .bats)
    [[ $name == load* ]] || names+=("$name")
  done
fi
names=("${names[@]/#/tests/bats/}")
REDLOCK_CLI=$program bats --filter-tags '!glibc' "${names[@]/%/.bats}"
