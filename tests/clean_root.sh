# For tests to source: clean roots of Debian, and checks that are counted. The roots, and what the
# last check printed, are in the directory $work, which the test makes and removes.
# shellcheck shell=bash
# shellcheck disable=SC2016,SC2154  # the roots' shells expand; $work is the test's

# Where this machine gets its packages.
mirror() {
  apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -v security | head -n 1
}

# make_root SUITE: as $work/SUITE. Fails when the mirror gives us none; $work/log says why.
make_root() {
  debootstrap --variant=minbase "$1" "$work/$1" "$(mirror)" >"$work/log" 2>&1 || return
  cp /etc/resolv.conf /etc/hosts "$work/$1/etc/"
  # A mirror may be behind.
  echo 'Acquire::Check-Valid-Until "false";' >"$work/$1/etc/apt/apt.conf.d/mirror"
}

# in_root SUITE SCRIPT: as root there, with /proc and a /run of its own. What it leaves running ends
# with it.
in_root() {
  unshare --mount --pid --fork --propagation private -- sh -euc '
    mount -t proc proc "$1/proc"
    mount --rbind /dev "$1/dev"
    mount -t tmpfs tmpfs "$1/run"
    mkdir -m 1777 "$1/run/lock"
    exec chroot "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
      DEBIAN_FRONTEND=noninteractive sh -exc "$2"
  ' sh "$work/$1" "$2"
}

passed=0
failed=0
# check WHAT CMD…
check() {
  local what=$1
  shift
  if "$@" >"$work/log" 2>&1; then
    passed=$((passed + 1))
    echo "ok      $what"
  else
    failed=$((failed + 1))
    echo "FAILED  $what"
    tail -n 40 "$work/log" | sed 's/^/          /'
  fi
}

# Says how many checks there were; false if one of them failed.
summary() {
  echo "$passed passed, $failed failed"
  ((failed == 0))
}
