#!/usr/bin/env bash
# Tries the static file in roots of all kinds, and prints a table of roots and jobs: an empty root,
# one of Alpine's shape, those of Debian's releases, and one whose OpenSSL and name services are set
# up to have code loaded. strace(1) shows that no library is ever opened.
# usage: tests/anywhere.sh PROGRAM [ROOT…]   (as root)
#   PROGRAM: the static file of a release, or of preset static
#   ROOT: empty, alpine, bookworm, hostile, trixie, sid, bullseye, buster; all, unless named
# On demand. The roots come from the mirror that this machine's apt uses; one that it does not have
# is skipped, and the table says so.
# shellcheck disable=SC2016  # the roots' shells expand
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. packaging/dependencies.sh
. tests/clean_root.sh
export LC_ALL=C.UTF-8
for variable in "${!REDLOCK_@}"; do unset "$variable"; done

program=$(realpath "${1:?usage: tests/anywhere.sh PROGRAM [ROOT…]}")
roots=("${@:2}")
((${#roots[@]})) || roots=(empty alpine bookworm hostile trixie sid bullseye buster)
((EUID == 0)) || { echo "anywhere.sh: needs root, to make roots" >&2; exit 77; }
ensure_packages debootstrap busybox-static strace redis-server openssl iproute2 binutils apt-utils \
  python3
if readelf --wide --program-headers --dynamic "$program" | grep -E 'INTERP|\(NEEDED\)'; then
  echo "anywhere.sh: $program is not static" >&2
  exit 65
fi

work=$(mktemp -d /tmp/redlock-anywhere.XXXXXX)
chmod 755 "$work"
names=
servers=()
both=rl-both-$$
six=rl-six-$$
clean_up() {
  local pid
  for pid in $names "${servers[@]}"; do { kill "$pid" && wait "$pid"; } 2>/dev/null || true; done
  ip netns del "$both" 2>/dev/null || true
  ip netns del "$six" 2>/dev/null || true
  rm -rf --one-file-system "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# --- The roots ---

# Where each has its CAs.
declare -A authorities=()

# add_program ROOT: the file, a shell, and what a container engine puts there.
add_program() {
  local root=$work/$1
  mkdir -p "$root"/{dev,proc,sys,run,tmp,etc}
  chmod 1777 "$root/tmp"
  cp "$program" "$root/redlock-cli"
  cp "$(dpkg -L busybox-static | grep -E '/busybox$' | head -n 1)" "$root/busybox"
  rm -f "$root/etc/resolv.conf" # systemd-resolved makes it a link
  printf 'nameserver 127.0.0.53\n' >"$root/etc/resolv.conf"
  # Without /etc/host.conf, libc takes the first line alone.
  printf '::1 hosts.example six.example\n127.0.0.1 hosts.example\n' >"$root/etc/hosts"
}

trust() {
  authorities[$1]=$2
  mkdir -p "$work/$1${2%/*}"
  cat "$work/ca.crt" >>"$work/$1$2"
}

# debian ROOT SUITE
debian() {
  make_root "$2" || return
  [[ $1 == "$2" ]] || mv "$work/$2" "$work/$1"
  trust "$1" /etc/ssl/certs/ca-certificates.crt
}

make_empty() { trust empty /etc/ssl/cert.pem; }

# Alpine's C library and its shell, no glibc.
make_alpine() {
  mkdir "$work/musl" "$work/alpine"
  (cd "$work/musl" && apt-get -q download musl && dpkg -x musl_*.deb "$work/alpine") \
    >"$work/log" 2>&1 || return
  mkdir -p "$work/alpine/bin" "$work/alpine/etc"
  ln -s /busybox "$work/alpine/bin/sh"
  echo 3.22.0 >"$work/alpine/etc/alpine-release"
  printf 'root:x:0:0:root:/root:/bin/sh\n' >"$work/alpine/etc/passwd"
  trust alpine /etc/ssl/cert.pem
}

# Whose OpenSSL loads an engine and a FIPS provider, and whose names come from services of all kinds,
# which are installed.
make_hostile() {
  debian hostile bookworm || return
  in_root hostile 'apt-get -q update
    apt-get -q -y --no-install-recommends install libnss-resolve libnss-sss libnss-mdns \
      libnss-myhostname openssl' >"$work/log" 2>&1 || return
  mkdir -p "$work/hostile/usr/lib/ssl" "$work/hostile/etc/ssl"
  cat >"$work/hostile/etc/ssl/openssl.cnf" <<'END'
openssl_conf = init
[init]
engines = engines
providers = providers
alg_section = algorithms
[engines]
padlock = padlock
[padlock]
engine_id = padlock
dynamic_path = /usr/lib/x86_64-linux-gnu/engines-3/padlock.so
init = 1
[providers]
fips = fips
legacy = legacy
[fips]
module = /usr/lib/x86_64-linux-gnu/ossl-modules/fips.so
activate = 1
[legacy]
module = /usr/lib/x86_64-linux-gnu/ossl-modules/legacy.so
activate = 1
[algorithms]
default_properties = fips=yes
END
}

# Nothing but the file, in which every service is named.
hostile_services=(
  "files dns"
  "resolve [!UNAVAIL=return] files dns"
  "sss files dns"
  "files mdns4_minimal [NOTFOUND=return] dns"
  "myhostname files dns"
)

# --- The jobs ---

# The servers, for all roots: on 127.0.0.1 and ::1, and on ::1 alone.
ip netns add "$both"
ip netns add "$six"
ip -n "$both" link set lo up
ip -n "$six" link set lo up
ip -n "$six" addr del 127.0.0.1/8 dev lo

openssl req -x509 -newkey rsa:2048 -nodes -keyout "$work/key" -out "$work/ca.crt" -days 2 \
  -subj /CN=anywhere -addext \
  subjectAltName=DNS:dns.example,DNS:hosts.example,DNS:six.example,IP:127.0.0.1,IP:::1 2>/dev/null
# serve NAMESPACE ADDRESS…
serve() {
  local socket=$work/$1.sock
  ip netns exec "$1" redis-server --bind "${@:2}" --port 6379 --tls-port 6380 \
    --unixsocket "$socket" --tls-cert-file "$work/key.crt" --tls-key-file "$work/key" \
    --tls-auth-clients no --save '' --dir "$work" >"$work/$1.log" 2>&1 &
  servers+=($!)
  for _ in {1..100}; do
    [[ $(redis-cli -s "$socket" ping 2>/dev/null) != PONG ]] || return 0
    sleep 0.1
  done
  cat "$work/$1.log" >&2
  return 1
}
cp "$work/ca.crt" "$work/key.crt"
serve "$both" 127.0.0.1 ::1
serve "$six" ::1
ip netns exec "$both" python3 tests/bats/helper/names.py "$work/never" >"$work/names" &
names=$!
for _ in {1..100}; do
  [[ ! -s $work/names ]] || break
  sleep 0.1
done

# Functions for the scripts in a root, which have no other programs than the two.
prelude='
  gives() {
    expected=$1
    shift
    status=0
    "$@" || status=$?
    test "$status" = "$expected" || { echo "exit status $status, not $expected: $*"; exit 1; }
  }
  wait_until() {
    tries=0
    until "$@"; do
      tries=$((tries + 1))
      test "$tries" -lt 200 || { echo "not yet: $*"; exit 1; }
      /busybox sleep 0.1
    done
  }
  rl=/redlock-cli
  export REDLOCK_RESTART_GUARD=0
  cd "$(/busybox mktemp -d)"
  /busybox chmod 777 .
'

# Before a program in the root, after those of this machine: strace, for a job.
tracer=()

# enter NAMESPACE USER ROOT SCRIPT: as a container engine would.
enter() {
  ip netns exec "$1" "${tracer[@]}" unshare --mount --pid --fork --kill-child \
    --propagation private -- sh -euc '
    mount -t proc proc "$2/proc"
    mount --rbind /dev "$2/dev"
    mount -t tmpfs -o mode=755 tmpfs "$2/run"
    mkdir -m 1777 "$2/run/lock"
    exec chroot --userspec="$1" --groups= "$2" /busybox env -i PATH=/bin:/usr/bin \
      REDLOCK_SERVER="$3" /busybox sh -euc "$4"
  ' sh "$2" "$work/$3" "$server" "$prelude$4"
}

server=redis://127.0.0.1
declare -A job=()
job[run]='
  gives 7 $rl run -k a -- /busybox sh -c "$rl status a --exit-code -q || test \$? = 75; exit 7"
  gives 0 $rl status a --exit-code -q
  gives 0 $rl run -S local: -k a -- /busybox true'
job[wait]='
  $rl run -k w -- /busybox sh -c "echo >in; until test -e out; do /busybox sleep 0.1; done" &
  wait_until test -e in
  gives 75 $rl run -k w -n -- /busybox true
  $rl run -k w -w 20s -- /busybox sh -c "test -e out && echo >second" &
  waiter=$!
  wait_until /busybox sh -c "/redlock-cli status w | /busybox grep waiting"
  test ! -e second
  echo >out
  gives 0 wait $waiter
  test -e second'
job[stop]='
  $rl run -k s -- /busybox sh -c "echo >in; exec /busybox sleep 600" &
  first=$!
  wait_until test -e in
  gives 0 $rl stop s --reason "enough"
  gives 143 wait $first
  gives 0 $rl status s --exit-code -q'
job[TLS]='
  for host in 127.0.0.1 dns.example hosts.example; do
    export REDLOCK_SERVER=rediss://$host:6380
    gives 75 $rl run -k t -- $rl status t --exit-code -q
  done
  $rl doctor --json >doctor || true
  /busybox grep -F "\"trusted_cas\":\"" doctor | /busybox grep -F AUTHORITIES
  export SSL_CERT_FILE=/nowhere SSL_CERT_DIR=/nowhere
  gives 77 $rl run -k t -n -- /busybox true 2>said
  /busybox grep "this host has none" said'
job[status]='
  gives 0 $rl run -k x --note why -- $rl status x --json >json
  /busybox grep -F "\"note\":\"why\"" json
  $rl run -k x -- $rl status | /busybox grep "^x "'
job[completion]='
  for shell in bash zsh fish; do
    $rl completion $shell >completion
    test "$(/busybox wc -l <completion)" -gt 10
  done
  $rl completion suggest 1 redlock-cli ru >words 2>&1 || true
  $rl --version >version'
job[uid]='
  gives 0 $rl run -k u -- $rl status u --json >json
  /busybox grep -F "\"user\":\"54321\"" json
  gives 0 $rl run -S local: -k u -- /busybox true'
# The script itself becomes the program.
job[pid1]='
  exec $rl run -k p -- /busybox sh -c "
    test \$(/busybox readlink /proc/1/exe) = /redlock-cli || exit 5
    (/busybox sleep 0.2 &)
    exit 0"'
job[IPv6]='
  for url in redis://[::1] rediss://[::1]:6380 rediss://six.example:6380 redis://hosts.example; do
    gives 75 /busybox env REDLOCK_SERVER=$url $rl run -k six -- $rl status six --exit-code -q
  done'
# Whatever may have a library loaded.
job[no.so]='
  for url in rediss://127.0.0.1:6380 rediss://dns.example:6380 rediss://hosts.example:6380; do
    gives 0 /busybox env REDLOCK_SERVER=$url $rl run -k n -- $rl status n
  done
  gives 69 $rl status -S redis://no.such.host.example:1 n
  gives 0 $rl acquire -S local: -k n --ttl 1m --token-file lease
  gives 0 $rl release -S local: --token-file lease
  gives 0 /busybox env OPENSSL_CONF=/etc/ssl/openssl.cnf REDLOCK_SERVER=rediss://127.0.0.1:6380 \
    $rl run -k n -- /busybox true'
jobs=(run wait stop TLS status completion uid pid1 IPv6 no.so)

# No process in the root opens a library. The lines before the first are of this machine's programs.
opens_no_library() {
  local root=$1
  tracer=(strace -f -o "$work/trace" -e "trace=open,openat,openat2,execve")
  local code=0
  enter "$both" 54321:54321 "$root" "${job[no.so]}" || code=$?
  tracer=()
  sed '1,/execve("\/busybox"/d' "$work/trace" >"$work/inside"
  grep -q 'execve("/redlock-cli"' "$work/inside" || { echo "the trace has no program"; return 1; }
  ! grep -E '"[^"]*\.so(\.[^"]*)?"' "$work/inside" || return 1
  return "$code"
}

# do_job ROOT JOB
do_job() {
  local script=${job[$2]//AUTHORITIES/${authorities[$1]}}
  case $2 in
    uid) enter "$both" 54321:54321 "$1" "$script" ;;
    IPv6) enter "$six" 0:0 "$1" "$script" ;;
    no.so)
      if [[ $1 != hostile ]]; then
        opens_no_library "$1"
        return
      fi
      local services
      for services in "${hostile_services[@]}"; do
        printf 'hosts: %s\npasswd: %s\ngroup: %s\n' "$services" "$services" "$services" \
          >"$work/hostile/etc/nsswitch.conf"
        opens_no_library hostile || { echo "nsswitch.conf: $services"; return 1; }
      done
      ;;
    *) enter "$both" 0:0 "$1" "$script" ;;
  esac
}

table=$(printf '%-10s' root; printf ' %-10s' "${jobs[@]}")
for root in "${roots[@]}"; do
  case $root in
    empty | alpine | hostile) make=("make_$root") ;;
    *) make=(debian "$root" "$root") ;;
  esac
  if ! "${make[@]}"; then
    echo "SKIPPED $root: the mirror gives us no root: $(tail -n 1 "$work/log")"
    table+=$'\n'$(printf '%-10s not tried: the mirror does not have it' "$root")
    continue
  fi
  add_program "$root"
  table+=$'\n'$(printf '%-10s' "$root")
  for name in "${jobs[@]}"; do
    before=$failed
    check "$root: $name" do_job "$root" "$name"
    table+=$(printf ' %-10s' "$( ((failed == before)) && echo ok || echo FAILED)")
  done
  rm -rf --one-file-system "${work:?}/$root"
done
printf '\n%s\n\n' "$table"
summary
