#!/usr/bin/env bash
# Tries what packaging/container makes, without a container engine: the same root file system, the
# same user, redlock-cli as process 1 of a pid namespace, and a server on loopback, with and without
# TLS.
# usage: tests/container.sh PROGRAM   (as root; PROGRAM: the static file of a release)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C.UTF-8
for variable in "${!REDLOCK_@}"; do unset "$variable"; done
program=$(realpath "${1:?usage: tests/container.sh PROGRAM}")
((EUID == 0)) || { echo "container.sh: needs root, to change the root" >&2; exit 77; }

work=$(mktemp -d /tmp/redlock-container.XXXXXX)
chmod 755 "$work"
root=$work/root
server=
clean_up() {
  [[ -z $server ]] || { kill "$server" && wait "$server"; } 2>/dev/null || true
  rm -rf --one-file-system "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

problems=0
# check WHAT CMD…
check() {
  local what=$1
  shift
  "$@" >"$work/log" 2>&1 || {
    problems=$((problems + 1))
    echo "container: $what: failed" >&2
    tail -n 20 "$work/log" >&2
  }
}

packaging/container/rootfs.sh "$program" "$root"
# Of the last image, which is built unless another is named.
user=$(sed -n 's/^USER //p' packaging/container/Dockerfile)
entry=$(sed -n 's/^ENTRYPOINT \["\(.*\)"\]$/\1/p' packaging/container/Dockerfile | tail -n 1)

# A server that every user may reach, whose certificate is by a CA that the image trusts.
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$work/key" -out "$work/cert" -days 2 \
  -subj /CN=test -addext subjectAltName=IP:127.0.0.1 2>/dev/null
cat "$work/cert" >>"$root/etc/ssl/certs/ca-certificates.crt"
redis() { redis-cli -p "$port" "$@" 2>/dev/null; }
for _ in {1..20}; do
  port=$((20000 + SRANDOM % 12000))
  redis-server --bind 127.0.0.1 --port "$port" --tls-port "$((port + 1))" \
    --tls-cert-file "$work/cert" --tls-key-file "$work/key" \
    --tls-auth-clients no --save '' --dir "$work" >"$work/server" 2>&1 &
  server=$!
  while kill -0 "$server" 2>/dev/null &&
    [[ $(redis config get pidfile >/dev/null && redis info server | tr -d '\r' |
      sed -n 's/^process_id://p') != "$server" ]]; do
    sleep 0.05
  done
  ! kill -0 "$server" 2>/dev/null || break
  wait "$server" || true
  server=
done
[[ -n $server ]] || { echo "container: no server" >&2; exit 71; }

# contained [NAME=VALUE…] -- ARG…: the entry point with these arguments, as an engine starts it.
contained() {
  local environment=()
  while [[ $1 != -- ]]; do
    environment+=("$1")
    shift
  done
  shift
  # shellcheck disable=SC2016  # that shell expands
  env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${environment[@]}" \
    unshare --mount --pid --fork --kill-child --propagation private -- sh -euc '
      mount -t proc proc "$1/proc"
      root=$1 user=$2
      shift 2
      exec chroot --userspec="$user" --groups= "$root" "$@"' sh "$root" "$user" "$entry" "$@"
}
plain=REDLOCK_SERVER=redis://127.0.0.1:$port
tls=REDLOCK_SERVER=rediss://127.0.0.1:$((port + 1))

exits_with() {
  local expected=$1 code=0
  shift
  "$@" || code=$?
  ((code == expected)) || { echo "exit status $code"; return 1; }
}

# As COPY --from takes it into another image.
check "the program lies where the documents say" test -f "$root/redlock-cli" -a ! -L "$root/redlock-cli"
check "--version" contained -- --version
check "no server is configured" exits_with 78 contained -- status
check "the lock of a command, which sees it" exits_with 75 contained "$plain" -- run -k a \
  -- redlock-cli status a --exit-code
check "the same over TLS, with the image's CAs" exits_with 75 contained "$tls" -- run -k a \
  -- redlock-cli status a --exit-code
check "doctor" exits_with 1 contained "$plain" -- doctor
check "a lock on this host" exits_with 75 contained REDLOCK_SERVER=local: -- run -k a \
  -- redlock-cli status a --exit-code

holder_is() {
  contained "$plain" -- run -k a -- redlock-cli status a --json >"$work/status" && python3 -c '
import json, sys
holder = json.load(open(sys.argv[1]))["locks"][0]["holder"]
assert (holder["pid"], holder["user"]) == (1, "nonroot"), holder
' "$work/status"
}
check "it is process 1, and an ordinary user" holder_is

wait_until() {
  local _
  for _ in {1..1000}; do
    ! "$@" || return 0
    sleep 0.02
  done
  echo "not yet: $*"
  return 1
}
queued() { [[ $(redis zcard 'redlock:queue:{b}') == "$1" ]]; }
gone() { [[ $(redis exists "$1") == 0 ]]; }
# Of the process in front: a command waits for b, which another has.
is_stopped_by_term() {
  redis set b another px 600000
  contained "$plain" -- run -k a -- redlock-cli acquire -k b --ttl 10s &
  local namespace=$! first
  wait_until queued 1 || return
  first=$(pgrep -P "$(pgrep -P "$namespace")") # below the shell of this function, and unshare
  ! gone a && kill -TERM "$first" && exits_with 143 wait "$namespace" && wait_until gone a &&
    wait_until queued 0
}
check "TERM to process 1 stops the command, and the lock is released" is_stopped_by_term

((problems == 0)) || exit 1
echo "container: $(find "$root" -type f | wc -l) files, $(du -sm "$root" | cut -f1) MB: \
all checks hold"
