#!/usr/bin/env bash
# Builds preset dev in a clean Debian that is newer than this machine's, each source by itself and
# with shared libraries, and runs the unit tests and a part of tests/bats there.
# usage: tests/compat.sh [NAME…]   (as root)
#   NAME…: which files of tests/bats; by default those of locks, quorums and runs
#   SUITE, CXX: in the environment; trixie, and g++, or clang++
# On demand. The root comes from the mirror that this machine's apt uses; nothing is installed here
# but debootstrap.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. packaging/dependencies.sh
. tests/clean_root.sh

# What the servers have the largest part in.
names=(acquire_release quorum fence run_command restart_guard interop sentinel cluster
  cluster_changes)
(($# == 0)) || names=("$@")
suite=${SUITE:-trixie}
compiler=${CXX:-g++}

# Without what only fuzzing and the model need.
tests=(ca-certificates)
for package in "${TEST_PACKAGES[@]}"; do
  [[ $package =~ ^(clang|clangd|spin|tcc)$ ]] || tests+=("$package")
done
case $compiler in
  g++) ;;
  clang++) tests+=(clang) ;;
  *) echo "compat.sh: CXX: g++ or clang++, not $compiler" >&2; exit 64 ;;
esac
((EUID == 0)) || { echo "compat.sh: needs root, to make a root" >&2; exit 77; }
ensure_packages debootstrap

work=
clean_up() { [[ -z $work ]] || rm -rf --one-file-system "$work"; }
trap clean_up EXIT
work=$(mktemp -d)
chmod 755 "$work"
make_root "$suite" || { tail -n 5 "$work/log" >&2; exit 71; }
mkdir "$work/$suite/src"
tar --exclude=./build --exclude=./.git -cf - . | tar -C "$work/$suite/src" -xf -

# In a mount namespace, so that nothing stays mounted whatever happens.
# shellcheck disable=SC2016
unshare --mount --propagation private -- sh -euc '
  root=$1 CXX=$2
  shift 2
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mount --rbind /sys "$root/sys"
  exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
    CXX="$CXX" bash -euc "$@"
' sh "$work/$suite" "$compiler" '
  cd /src
  . packaging/dependencies.sh
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
