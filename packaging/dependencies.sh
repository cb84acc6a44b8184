#!/usr/bin/env bash
# The Debian packages that redlock-cli needs, in one place, and what installs those that are
# missing.
#
#   packaging/dependencies.sh            install what all tests need
#   packaging/dependencies.sh build      … what building needs, and the unit tests and most bats tests
#   packaging/dependencies.sh program    … what building the program needs
#   packaging/dependencies.sh cross      … what building it for 64-bit ARM needs, too
#   . packaging/dependencies.sh          only define BUILD_PACKAGES, FIRST_TEST_PACKAGES,
#                                        TEST_PACKAGES, ensure_packages, ensure_test_packages

# shellcheck disable=SC2034  # read by those who source this file
BUILD_PACKAGES=(
  g++ cmake ninja-build pkg-config
  libasio-dev libhiredis-dev libcli11-dev libfmt-dev nlohmann-json3-dev libexpected-dev libssl-dev
  libtomlplusplus-dev liblua5.1-0-dev libmd-dev
)

# Beyond BUILD_PACKAGES: for preset dev, and a developer's first test.
FIRST_TEST_PACKAGES=(lld libgtest-dev redis-server bats bats-assert bats-support bash-builtins)

# Beyond BUILD_PACKAGES; clang's runtime, whose name carries a version, is added by
# ensure_test_packages.
TEST_PACKAGES=(
  "${FIRST_TEST_PACKAGES[@]}"
  python3-redis python3-jsonschema python3-yaml jq
  zsh fish bash-completion dash mandoc groff-base binutils clang clang-format clangd iproute2 procps util-linux
  strace spin tcc less openssl
  make sqlite3 postgresql tmux
)

readonly DEPENDENCIES_SH=${BASH_SOURCE[0]}

# sysexits(3) EX_UNAVAILABLE: something that is needed is not there.
readonly EX_UNAVAILABLE=69

# Prints those of the packages named that are not installed, one a line. A name without an
# architecture is that of this machine's.
missing_packages() {
  local package architecture native
  local -A installed=()
  native=$(dpkg --print-architecture)
  while read -r package architecture; do
    installed[$package:$architecture]=1
    [[ $architecture != "$native" && $architecture != all ]] || installed[$package]=1
  done < <(
    dpkg-query -W -f '${Package} ${Architecture} ${db:Status-Status}\n' "$@" 2>/dev/null |
      sed -n 's/ installed$//p')
  for package; do
    [[ -v installed[$package] ]] || printf '%s\n' "$package"
  done
}

# Sees to it that all packages named are installed. Says in one line what it installs, or why it
# cannot; then returns 69.
ensure_packages() {
  local me=${0##*/}
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "$me: no dpkg and apt-get here; needs what Debian calls: $*" >&2
    return "$EX_UNAVAILABLE"
  fi

  local missing
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]})) || return 0

  local become=()
  if ((EUID != 0)); then
    # Without a terminal the user cannot type a password.
    if command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [[ -t 0 ]]; }; then
      become=(sudo --)
    else
      echo "$me: needs: apt-get install ${missing[*]}" >&2
      return "$EX_UNAVAILABLE"
    fi
  fi

  echo "$me: installing ${missing[*]}"
  if ! "${become[@]}" bash "$DEPENDENCIES_SH" install-as-root "${missing[@]}"; then
    echo "$me: could not install; needs: apt-get install ${missing[*]}" >&2
    return "$EX_UNAVAILABLE"
  fi
}

# BUILD_PACKAGES, TEST_PACKAGES and the runtime of whichever clang the distribution has.
ensure_test_packages() {
  ensure_packages "${BUILD_PACKAGES[@]}" "${TEST_PACKAGES[@]}" || return
  local runtime
  runtime=$(clang_runtime_package) || return
  [[ -z $runtime ]] || ensure_packages "$runtime"
}

# Prints what to install to build for ARCHITECTURE, as Debian names it: of the packages that both
# may have installed, that one's; headers and tools of this machine.
cross_packages() {
  local package
  for package in "${BUILD_PACKAGES[@]}"; do
    [[ $package != g++ ]] || continue
    # grep -q would be gone before apt-cache has written all, which pipefail makes a failure.
    if apt-cache show --no-all-versions "$package" | grep -x "Multi-Arch: same" >/dev/null; then
      package+=:$1
    fi
    echo "$package"
  done
}

# As root, since another architecture changes what apt knows.
ensure_cross_packages() {
  local packages
  ((EUID == 0)) || { echo "${0##*/}: needs root, for dpkg --add-architecture" >&2; return 77; }
  dpkg --add-architecture arm64 && apt-get -q=2 update || return
  mapfile -t packages < <(cross_packages arm64)
  apt_install "${packages[@]}" g++-aarch64-linux-gnu qemu-user
}

# The package with clang's sanitizer and fuzzer libraries; nothing when clang already finds them.
clang_runtime_package() {
  local major
  compgen -G "$(clang -print-resource-dir)/lib/linux/libclang_rt.fuzzer-*.a" >/dev/null && return
  major=$(clang -dumpversion) || return
  echo "libclang-rt-${major%%.*}-dev"
}

# --- What follows runs as root. ---

# The work of ensure_packages. A subshell, so that its traps are its own.
install_as_root() (
  log=$(mktemp)
  policy=
  trap 'rm -f "$log" ${policy:+"$policy"}' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  export DEBIAN_FRONTEND=noninteractive

  # No daemon starts merely because tests need its program: policy-rc.d is asked by invoke-rc.d and
  # by systemd's helper alike; runlevel 1 stops invoke-rc.d where the administrator has a policy of
  # his own.
  export RUNLEVEL=1
  if [[ ! -e /usr/sbin/policy-rc.d ]]; then
    policy=/usr/sbin/policy-rc.d
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
  fi

  redis_is_new=
  for package; do [[ $package != redis-server ]] || redis_is_new=1; done

  # The package lists are fetched when they know nothing of a package, or are so old that a download
  # fails.
  fetched=
  if ! apt-cache show --no-all-versions "$@" >/dev/null 2>&1; then
    apt-get -q update >"$log" 2>&1 || complain "$log"
    fetched=1
  fi
  if ! apt_install "$@" >"$log" 2>&1; then
    if [[ -n $fetched ]] ||
      ! apt-get -q update >"$log" 2>&1 ||
      ! apt_install "$@" >"$log" 2>&1; then
      complain "$log"
      exit "$EX_UNAVAILABLE"
    fi
  fi

  # Nor does it start at the next boot.
  if [[ -n $redis_is_new ]]; then
    if [[ -d /run/systemd/system ]]; then
      systemctl disable --quiet --now redis-server.service >/dev/null 2>&1 || true
    else
      update-rc.d redis-server disable >/dev/null 2>&1 || true
    fi
  fi
)

apt_install() {
  apt-get -q -y -o DPkg::Lock::Timeout=120 --no-install-recommends install "$@" </dev/null
}

# apt's own last error, in one line.
complain() {
  local error
  error=$(grep '^E:' "$1" | tail -n 1)
  echo "apt-get: ${error:-$(tail -n 1 "$1")}" >&2
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  set -euo pipefail
  case ${1-test} in
    program) ensure_packages "${BUILD_PACKAGES[@]}" ;;
    cross) ensure_cross_packages ;;
    build) ensure_packages "${BUILD_PACKAGES[@]}" "${FIRST_TEST_PACKAGES[@]}" ;;
    test) ensure_test_packages ;;
    install-as-root) install_as_root "${@:2}" ;;
    *)
      echo "usage: ${0##*/} [program|cross|build|test]" >&2
      exit 64
      ;;
  esac
fi
