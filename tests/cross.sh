#!/usr/bin/env bash
# Makes a release for 64-bit ARM with packaging/aarch64-linux-gnu.cmake, in a clean Debian 12, once
# more with the same bytes, and tries its static file there, under qemu-aarch64.
# usage: tests/cross.sh   (as root)
# On demand, as it takes minutes: `cmake --build --preset release --target check-cross`. The root
# comes from the mirror that this machine's apt uses. What is built is the last commit.
#
# Not tried, as qemu-user 7.2 of Debian 12 cannot do it:
# - What becomes of descendants whose parent has ended: prctl(PR_SET_CHILD_SUBREAPER) is EINVAL
#   there, so they are no longer found below us, and go on.
# - Nested runs: its /proc/self/stat has a start of its own making, some ticks off the kernel's, so
#   no run knows its parent.
# - A share of the CPU for the guards: it has no sched_setattr(2), and the program does without.
# shellcheck disable=SC2016  # the root's shells expand
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. packaging/dependencies.sh
. tests/clean_root.sh
export LC_ALL=C.UTF-8

((EUID == 0)) || { echo "cross.sh: needs root, to make a root" >&2; exit 77; }
ensure_packages debootstrap git binutils file dpkg-dev rpm

work=$(mktemp -d /tmp/redlock-cross.XXXXXX)
chmod 755 "$work"
clean_up() { rm -rf --one-file-system "$work"; }
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

suite=bookworm
make_root "$suite" || {
  echo "cross.sh: the mirror gives us no root: $(tail -n 1 "$work/log")" >&2
  exit "$EX_UNAVAILABLE"
}
root=$work/$suite
version=$(sed -En 's/^project\(.* VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)

# --- The build ---

mkdir "$root/program"
git clone -q . "$root/src"
check "the cross compiler and the libraries for ARM can be installed" in_root "$suite" '
  printf "#!/bin/sh\nexit 101\n" >/usr/sbin/policy-rc.d
  chmod 755 /usr/sbin/policy-rc.d
  apt-get -q=2 update
  apt-get -q -y --no-install-recommends install git redis-server openssl
  /src/packaging/dependencies.sh cross'
check "a release is made" in_root "$suite" '
  git config --global --add safe.directory /src
  cd /src
  packaging/release.sh /dist aarch64'
check "the static file has its place in the tarball" tar -C "$root/program" -xzf \
  "$root/dist/redlock-cli-$version-linux-aarch64.tar.gz" --strip-components=1
program=$root/program/bin/redlock-cli
[[ -x $program ]] || { summary; exit 1; }
packages_are_for_arm() {
  dpkg-deb -f "$root/dist"/*.deb Architecture Depends | tee /dev/stderr | grep -x "Architecture: arm64" &&
    dpkg-deb -f "$root/dist"/*.deb Depends | grep libc6 &&
    rpm -qp --queryformat '%{ARCH}\n' "$root/dist"/*.rpm | grep -x aarch64
}
check "the .deb and the .rpm are for ARM, and know what they need" packages_are_for_arm
program_of_deb() {
  mkdir "$work/deb"
  dpkg-deb -x "$root/dist"/*.deb "$work/deb"
  file "$work/deb/usr/bin/redlock-cli" | tee /dev/stderr | grep 'ARM aarch64' | grep -w stripped &&
    tests/hardening.sh "$work/deb/usr/bin/redlock-cli"
}
check "the program in the .deb is for ARM, stripped and hardened" program_of_deb
check "the .deb installs beside libraries for ARM, and locks" in_root "$suite" '
  dpkg -i /dist/*.deb
  qemu-aarch64 /usr/bin/redlock-cli run -S local: -k a -- true
  dpkg --purge redlock-cli'

gives_the_same_bytes() {
  in_root "$suite" '
    git clone -q /src /tmp/a-second-directory
    cd /tmp/a-second-directory
    packaging/release.sh /second-dist aarch64' &&
    diff "$root/dist/SHA256SUMS" "$root/second-dist/SHA256SUMS"
}
check "a second build, in a directory of another name, gives the same bytes" gives_the_same_bytes

# --- The program ---

is_for_arm() { file "$program" | tee /dev/stderr | grep 'ELF 64-bit LSB pie.* ARM aarch64,'; }
check "the program is for ARM" is_for_arm
check "it is stripped" sh -c '! readelf --wide --sections "$1" | grep -E " \.(symtab|comment) "' \
  sh "$program"
needs_nothing() { ! readelf --wide --program-headers --dynamic "$1" | grep -E 'INTERP|NEEDED'; }
check "it needs no library" needs_nothing "$program"
check "it is hardened" tests/hardening.sh "$program"
check "its libc is the one that Debian updates" in_root "$suite" '
  cd /src/build/static-aarch64
  ninja -t commands redlock-cli | tail -n 1 | sed "s/ -o / -Wl,--trace -o /" >/tmp/link
  sh /tmp/link 2>/dev/null | grep -oE "/[^ ()]*/(libc\.a|rcrt1\.o)" | sort -u >/tmp/linked
  printf "/usr/lib/aarch64-linux-gnu/%s\n" libc.a rcrt1.o | diff - /tmp/linked'
check "it can be linked with another libc" in_root "$suite" '
  mkdir /tmp/relink
  tar -C /tmp/relink -xzf /dist/redlock-cli-*-linux-aarch64-relink.tar.gz --strip-components=1
  grep "^libc6-dev arm64 " /tmp/relink/BUILT-WITH
  CXX=aarch64-linux-gnu-g++ /tmp/relink/relink.sh
  qemu-aarch64 /tmp/relink/redlock-cli run -S local: -k a -- true'

printf '#!/bin/sh\nexec qemu-aarch64 /program/bin/redlock-cli "$@"\n' >"$root/usr/bin/redlock-cli"
chmod 755 "$root/usr/bin/redlock-cli"

# try WHAT SCRIPT: with redlock-cli, and an empty directory to work in.
try() {
  check "$1" in_root "$suite" '
    # gives STATUS CMD…
    gives() {
      expected=$1
      shift
      status=0
      "$@" || status=$?
      test "$status" = "$expected"
    }
    wait_until() {
      for try in $(seq 100); do
        ! "$@" || return 0
        sleep 0.1
      done
      return 1
    }
    # start_server OPTION…: reached through the socket /tmp/redis.sock; ends with the script.
    start_server() {
      redis-server --port 0 --unixsocket /tmp/redis.sock --save "" --dir "$PWD" "$@" >server.log &
      server=$!
      trap "kill $server; wait $server || true" EXIT
      wait_until redis-cli -s /tmp/redis.sock ping
    }
    export REDLOCK_SERVER='"${server:-local:}"'
    cd "$(mktemp -d)"
    test "$REDLOCK_SERVER" = local: || start_server
  '"$2"
}

try "--version" "redlock-cli --version | grep -x 'redlock-cli $version'"

for server in local: unix:///tmp/redis.sock; do
  try "$server run: the command's exit status, and the lock is held meanwhile" '
    gives 7 redlock-cli run -k a -- sh -c "
      redlock-cli status a --exit-code -q
      echo \$? >status
      exit 7"
    test "$(cat status)" = 75
    gives 0 redlock-cli status a --exit-code -q'
  try "$server run: a second one is kept out, until the first has ended" '
    redlock-cli run -k a -- sh -c "
      touch entered
      until test -e leave; do sleep 0.1; done" &
    wait_until test -e entered
    gives 75 redlock-cli run -k a -n -- touch second
    test ! -e second
    touch leave
    gives 0 wait $!
    gives 0 redlock-cli run -k a -n -- touch second
    test -e second'
  try "$server acquire, extend, release" '
    redlock-cli acquire -k a --ttl 1m --token-file lease
    gives 75 redlock-cli run -k a -n -- true
    gives 0 redlock-cli extend --token-file lease --ttl 1h
    redlock-cli status a | grep "expires in 59m"
    gives 0 redlock-cli release --token-file lease
    gives 0 redlock-cli run -k a -n -- true'
  try "$server run: TERM ends the command and frees the lock" '
    redlock-cli run -k a -- sh -c "echo \$\$ >pid; exec sleep 600" &
    wait_until test -s pid
    gives 75 redlock-cli status a --exit-code -q
    kill $!
    gives 143 wait $!
    gives 1 kill -0 "$(cat pid)"
    gives 0 redlock-cli status a --exit-code -q'
  try "$server run: killed, it takes the command along and frees the lock" '
    redlock-cli run -k a -- sh -c "echo \$\$ >pid; exec sleep 600" &
    wait_until test -s pid
    kill -s KILL $!
    gives 137 wait $!
    gives 0 redlock-cli run -k a --wait 10s -- true
    gives 1 kill -0 "$(cat pid)"'
done
server=

# A port that is taken lets the check fail; the next time it is another.
port=$((20000 + SRANDOM % 12000))
try "TLS, with the OpenSSL that is linked in" '
  openssl req -x509 -newkey rsa:2048 -nodes -keyout key -out cert -days 2 \
    -subj /CN=test -addext subjectAltName=IP:127.0.0.1 2>/dev/null
  start_server --bind 127.0.0.1 --tls-port '"$port"' --tls-cert-file cert --tls-key-file key \
    --tls-ca-cert-file cert --tls-auth-clients no
  export REDLOCK_SERVER=rediss://127.0.0.1:'"$port"'
  gives 77 redlock-cli run -k a -- true
  export REDLOCK_CACERT=$PWD/cert
  redlock-cli run -k a -- redis-cli -s /tmp/redis.sock exists a >exists
  test "$(cat exists)" = 1'

check "a part of tests/bats" in_root "$suite" '
  apt-get -q -y --no-install-recommends install bats bats-assert bats-support bash-builtins \
    binutils g++ iproute2 jq procps python3
  cd /src/tests/bats
  REDLOCK_CLI=/usr/bin/redlock-cli bats usage.bats fence.bats quorum.bats tls.bats'

summary
