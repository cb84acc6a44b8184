# shellcheck shell=bash
# Redis servers that speak TLS, and the certificates for them.
#
# Files of make_authority and make_certificate lie in $TLS: NAME.crt and NAME.key.

TLS=

prepare_tls() {
  TLS=$BATS_TEST_TMPDIR/tls
  mkdir -p "$TLS"
}

# make_authority NAME: a CA.
make_authority() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj "/CN=$1" \
    -keyout "$TLS/$1.key" -out "$TLS/$1.crt" 2>"$TLS/log" || { cat "$TLS/log" >&2; return 1; }
}

# make_certificate NAME CA SUBJECT-ALT-NAMES [DAYS]: a certificate that CA signs, e.g. for
# DNS:localhost,IP:127.0.0.1. With DAYS 0 it expires at once.
make_certificate() {
  {
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$1" \
      -addext "subjectAltName=$3" \
      -keyout "$TLS/$1.key" -out "$TLS/$1.csr" &&
      openssl x509 -req -in "$TLS/$1.csr" -CA "$TLS/$2.crt" -CAkey "$TLS/$2.key" -CAcreateserial \
      -days "${4-30}" \
        -copy_extensions copy -out "$TLS/$1.crt"
  } 2>"$TLS/log" || { cat "$TLS/log" >&2; return 1; }
}

# make_intermediate NAME CA [FILE]: a CA that CA signs, with the key of NAME if there is one; its
# certificate is $TLS/FILE.crt.
make_intermediate() {
  {
    [[ -e $TLS/$1.key ]] || openssl ecparam -name prime256v1 -genkey -noout -out "$TLS/$1.key" &&
      openssl req -new -key "$TLS/$1.key" -subj "/CN=$1" \
        -addext "basicConstraints=critical,CA:TRUE" -out "$TLS/$1.csr" &&
      openssl x509 -req -in "$TLS/$1.csr" -CA "$TLS/$2.crt" -CAkey "$TLS/$2.key" -CAcreateserial \
        -days 30 -copy_extensions copy -out "$TLS/${3-$1}.crt"
  } 2>"$TLS/log" || { cat "$TLS/log" >&2; return 1; }
}

# make_directory NAME CA…: $TLS/NAME, in which OpenSSL finds the CAs by their names.
make_directory() {
  local directory=$TLS/$1 authority
  mkdir -p "$directory"
  for authority in "${@:2}"; do
    cp "$TLS/$authority.crt" \
      "$directory/$(openssl x509 -noout -subject_hash -in "$TLS/$authority.crt").0"
  done
}

# start_tls_server CERTIFICATE CA [OPTION…]: one more server, with TLS on a free port of 127.0.0.1
# and ::1 (its URL) and with a unix socket (for `redis`). It requires a client certificate signed by
# CA, unless an option disables that.
start_tls_server() {
  start_on_free_port rediss --tls-port --bind 127.0.0.1 -::1 --port 0 \
    --tls-cert-file "$TLS/$1.crt" --tls-key-file "$TLS/$1.key" --tls-ca-cert-file "$TLS/$2.crt" \
    "${@:3}"
}

# start_relay NAME PORT BYTES: a relay to PORT of 127.0.0.1 that passes on BYTES bytes at a time,
# both ways; $RELAY_PORT is its own.
start_relay() {
  start_background "$1" /usr/bin/python3 "$BATS_TEST_DIRNAME/helper/relay.py" "$2" "$3"
  wait_for_stdout "$1"
  RELAY_PORT=$(<"$(background_stdout "$1")")
}
