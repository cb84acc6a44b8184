#!/usr/bin/env bash
# Runs a part of the tests with other servers, and with other compilers and libraries, than this
# machine's distribution has. They come as Debian packages, from the mirror that this machine's apt
# uses; nothing is installed here but debootstrap. On demand; needs root for `debian`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
. packaging/dependencies.sh
. tests/clean_root.sh

usage() {
  cat <<'END'
usage: tests/compat.sh valkey|redis|debian [NAME…]

  valkey   tests/bats with the newest Valkey that Debian has
  redis    tests/bats with its newest Redis
  debian   builds preset dev in a clean Debian (SUITE, or trixie) with CXX (clang++, or g++), each
           source by itself, with shared libraries, and runs the unit tests and tests/bats there

NAME…: which files of tests/bats; by default those of locks, quorums and runs. For valkey and redis,
preset dev must have been built.
END
}

# What the servers have the largest part in.
names=(acquire_release quorum fence run_command restart_guard interop sentinel cluster
  cluster_changes)

(($# >= 1)) || { usage >&2; exit 64; }
what=$1
shift
(($# == 0)) || names=("$@")

work=
clean_up() { [[ -z $work ]] || rm -rf --one-file-system "$work"; }
trap clean_up EXIT
work=$(mktemp -d)
chmod 755 "$work"

other_server() {
  PATH=$(tests/servers.sh "$what"):$PATH
  redis-server --version
  names=("${names[@]/#/tests/bats/}")
  bats "${names[@]/%/.bats}"
}

# In a mount namespace, so that nothing stays mounted whatever happens.
debian() {
  local tests=() package suite=${SUITE:-trixie} compiler=${CXX:-g++}
  ((EUID == 0)) || { echo "compat.sh: debian needs root" >&2; exit 77; }
  ensure_packages debootstrap
  # Without what only fuzzing and the model need.
  for package in "${TEST_PACKAGES[@]}"; do
    [[ $package =~ ^(clang|clangd|spin|tcc)$ ]] || tests+=("$package")
  done
  case $compiler in
    g++) ;;
    clang++) tests+=(clang) ;;
    *) echo "compat.sh: CXX: g++ or clang++, not $compiler" >&2; exit 64 ;;
  esac
  debootstrap --variant=minbase --include=ca-certificates "$suite" "$work/root" "$(mirror)" \
    >"$work/debootstrap.log" 2>&1 || {
    tail -n 5 "$work/debootstrap.log" >&2
    exit 71
  }
  mkdir "$work/root/src"
  tar -C "$root" --exclude=./build --exclude=./.git -cf - . | tar -C "$work/root/src" -xf -
  cp /etc/resolv.conf /etc/hosts "$work/root/etc/"
  # shellcheck disable=SC2016
  unshare --mount --propagation private -- sh -euc '
    root=$1 CXX=$2
    shift 2
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    mount --rbind /sys "$root/sys"
    exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
      CXX="$CXX" bash -euc "$@"
  ' sh "$work/root" "$compiler" '
    cd /src
    . packaging/dependencies.sh
    apt-get -q=2 -o Acquire::Check-Valid-Until=false update  # a mirror may be behind
    n=$1
    shift
    ensure_packages "${BUILD_PACKAGES[@]}" "${@:1:n}"
    shift "$n"
    "$CXX" --version | head -n 1
    redis-server --version
    cmake --preset dev -DREDLOCK_PCH=OFF \
      -DREDLOCK_STATIC_LUA_MD=OFF >/tmp/log || {
      cat /tmp/log
      exit 1
    }
    cmake --build --preset dev -j "$(nproc)" -- -k 0 >/tmp/log || {
      grep -A4 -E "error:|undefined reference" /tmp/log | head -n 200
      exit 1
    }
    status=0
    # The store of local: is held against the Redis that it was made after; Redis 8 writes and reads
    # some numbers otherwise.
    ctest --test-dir build/dev -L unit -E Differential -Q -O /tmp/log || status=1
    grep -E "tests passed|\\((Failed|Timeout)\\)" /tmp/log
    bats "${@/#/tests/bats/}" || status=1
    exit "$status"
  ' bash "${#tests[@]}" "${tests[@]}" "${names[@]/%/.bats}"
}

case $what in
  valkey | redis) other_server ;;
  debian) debian ;;
  *)
    usage >&2
    exit 64
    ;;
esac
