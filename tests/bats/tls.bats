#!/usr/bin/env bats
# bats file_tags=smoke
# rediss://: which servers are trusted, and that nothing else changes. The CA is made for the test.
load helper/common
load helper/tls

setup() {
  common_setup
  # A refusal must arrive within one attempt, which includes a handshake.
  export REDLOCK_SERVER_TIMEOUT=4s
  prepare_tls
  make_authority ca
  make_certificate good ca DNS:localhost,IP:127.0.0.1
}

# Nothing runs, nothing is locked, and one line says TEXT.
assert_refuses() {
  assert_refused "$1" "$2" redlock-cli run -k demo -n "${@:3}" -- touch "$BATS_TEST_TMPDIR/ran"
  assert [ ! -e "$BATS_TEST_TMPDIR/ran" ]
}

@test "all commands work over TLS, by address and by name" {
  start_tls_server good ca --tls-auth-clients no
  local url
  export REDLOCK_CACERT=$TLS/ca.crt
  for url in "rediss://127.0.0.1:${SERVER_PORT[0]}" "rediss://localhost:${SERVER_PORT[0]}/2" \
    "rediss://LOCALHOST:${SERVER_PORT[0]}"; do
    REDLOCK_SERVER=$url
    export REDLOCK_SERVER
    use_all_commands
  done
  assert_unlocked demo 0
}

@test "five servers with TLS are a quorum, also when two of them are gone" {
  local nr
  for nr in 1 2 3 4 5; do start_tls_server good ca --tls-auth-clients no; done
  export REDLOCK_CACERT=$TLS/ca.crt REDLOCK_SERVER=$SERVERS
  use_all_commands
  kill_server 1
  pause_server 3
  use_all_commands
  assert_unlocked demo 0 2 4
}

@test "a password and a client certificate go with it" {
  start_tls_server good ca --requirepass secret
  make_certificate client ca DNS:client
  export REDISCLI_AUTH=secret
  run -0 redlock-cli run -S "$SERVERS" -k demo --cacert "$TLS/ca.crt" --cert "$TLS/client.crt" \
    --cert-key "$TLS/client.key" -- true
  cat "$TLS/client.crt" "$TLS/client.key" >"$TLS/both.pem"
  run -0 redlock-cli run -S "$SERVERS" -k demo --cacert "$TLS/ca.crt" --cert "$TLS/both.pem" -- true
}

@test "a CA may come from a directory, from a configuration file, or from the system" {
  start_tls_server good ca --tls-auth-clients no
  make_directory cas ca
  run -0 redlock-cli run -S "$SERVERS" -k demo --cacertdir "$TLS/cas" -- true
  mkdir -p "$XDG_CONFIG_HOME/redlock-cli"
  printf 'server = "%s"\ncacert = "%s"\n' "$SERVERS" "$TLS/ca.crt" \
    >"$XDG_CONFIG_HOME/redlock-cli/config.toml"
  run -0 redlock-cli run -k demo -- true
  rm "$XDG_CONFIG_HOME/redlock-cli/config.toml"
  SSL_CERT_FILE=$TLS/ca.crt run -0 redlock-cli run -S "$SERVERS" -k demo -- true
}

# traced COMMAND…: runs it, and records which files it opens, for assert_opened and refute_opened.
traced() {
  strace -f -o "$BATS_TEST_TMPDIR/probe" true 2>/dev/null || skip "strace cannot run here"
  ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0" \
    run -0 strace -f -o "$BATS_TEST_TMPDIR/calls" -e trace=open,openat "$@"
}

assert_opened() { grep -F "$1" "$BATS_TEST_TMPDIR/calls"; }
refute_opened() { ! assert_opened "$1"; }

@test "the system's CAs are those of its directory and those of its bundle" {
  start_tls_server good ca --tls-auth-clients no
  make_authority other
  make_directory none
  make_directory ours ca
  make_directory others other
  export REDLOCK_SERVER=$SERVERS
  local directory bundle
  while read -r directory bundle; do
    SSL_CERT_DIR=$TLS/$directory SSL_CERT_FILE=$TLS/$bundle.crt run -0 redlock-cli run -k demo -- true
  done <<'END'
none ca
others ca
ours other
ours nowhere
nowhere ca
ours ca
END
  SSL_CERT_DIR=$TLS/others:$TLS/ours SSL_CERT_FILE=$TLS/other.crt \
    run -0 redlock-cli run -k demo -- true
  while read -r directory bundle; do
    SSL_CERT_DIR=$TLS/$directory SSL_CERT_FILE=$TLS/$bundle.crt \
      assert_refuses 77 "its certificate is not signed by a trusted CA; set its CA with --cacert"
  done <<'END'
none other
others other
nowhere nowhere
others nowhere
END
}

@test "the system's bundle is read only if its directory is not enough" {
  make_authority other
  make_authority root
  make_authority older
  make_intermediate between root
  make_certificate leaf between IP:127.0.0.1
  make_intermediate root older cross
  # The chain that a customer of a public CA sends: the intermediate CA, and the root signed by an
  # older one.
  cat "$TLS/between.crt" "$TLS/cross.crt" >>"$TLS/leaf.crt"
  start_tls_server leaf root --tls-auth-clients no
  make_directory roots root
  make_directory others other
  cp "$TLS/root.crt" "$TLS/bundle.crt"
  export SSL_CERT_FILE=$TLS/bundle.crt
  SSL_CERT_DIR=$TLS/roots traced redlock-cli run -S "$SERVERS" -k demo -- true
  assert_opened "$TLS/roots/"
  refute_opened bundle.crt
  SSL_CERT_DIR=$TLS/others traced redlock-cli run -S "$SERVERS" -k demo -- true
  assert_opened bundle.crt
}

@test "the system's CAs are not read with --cacert, nor with --insecure" {
  start_tls_server good ca --tls-auth-clients no
  cp "$TLS/ca.crt" "$TLS/bundle.crt"
  make_directory cas ca
  make_directory none
  export SSL_CERT_FILE=$TLS/bundle.crt
  local directory
  for directory in cas none; do
    export SSL_CERT_DIR=$TLS/$directory
    traced redlock-cli run -S "$SERVERS" -k demo --insecure -- true
    refute_opened bundle.crt
    refute_opened "$SSL_CERT_DIR"
    traced redlock-cli run -S "$SERVERS" -k demo --cacert "$TLS/ca.crt" -- true
    refute_opened bundle.crt
    refute_opened "$SSL_CERT_DIR"
  done
}

@test "with the system's CAs, too, names count and expired certificates do not" {
  make_certificate elsewhere ca DNS:elsewhere.example
  make_certificate old ca IP:127.0.0.1 0
  start_tls_server elsewhere ca --tls-auth-clients no
  start_tls_server old ca --tls-auth-clients no
  make_directory none
  make_directory ours ca
  wait_until eval '! openssl x509 -checkend 0 -noout -in "$TLS/old.crt"'
  local directory bundle
  while read -r directory bundle; do
    export SSL_CERT_DIR=$TLS/$directory SSL_CERT_FILE=$TLS/$bundle.crt
    assert_refuses 77 "its certificate is not for 127.0.0.1" \
      -S "rediss://127.0.0.1:${SERVER_PORT[0]}"
    assert_refuses 77 "has expired" -S "rediss://127.0.0.1:${SERVER_PORT[1]}"
    run -0 redlock-cli run -S "rediss://127.0.0.1:${SERVER_PORT[0]}" --sni elsewhere.example \
      -k demo -- true
  done <<'END'
none ca
ours nowhere
ours ca
END
}

@test "a CA in the system's directory does not hide another of its name in the bundle" {
  make_directory others ca
  make_authority ca
  make_certificate good ca IP:127.0.0.1
  start_tls_server good ca --tls-auth-clients no
  SSL_CERT_DIR=$TLS/others SSL_CERT_FILE=$TLS/ca.crt \
    run -0 redlock-cli run -S "$SERVERS" -k demo -- true
}

@test "without any CA on this host, the refusal says so" {
  start_tls_server good ca --tls-auth-clients no
  make_directory none
  export SSL_CERT_DIR=$TLS/none SSL_CERT_FILE=$TLS/nowhere.crt
  assert_refuses 77 "or install CA certificates: this host has none" -S "$SERVERS"
  SSL_CERT_FILE=/dev/null assert_refuses 77 "this host has none" -S "$SERVERS"
  make_authority other
  SSL_CERT_FILE=$TLS/other.crt run -77 redlock-cli run -S "$SERVERS" -k demo -n -- true
  refute_output --partial "this host has none"
}

@test "doctor says which CAs are trusted" {
  start_tls_server good ca --tls-auth-clients no
  make_directory none
  make_directory ours ca
  export REDLOCK_SERVER=$SERVERS SSL_CERT_FILE=$TLS/ca.crt
  trusts() { redlock-cli doctor --json "$@" 2>/dev/null | jq -r '.servers[0].trusted_cas'; }
  SSL_CERT_DIR=$TLS/none run -0 trusts
  assert_output "$TLS/ca.crt"
  SSL_CERT_DIR=$TLS/ours run -0 trusts
  assert_output "$TLS/ours, $TLS/ca.crt"
  run -0 trusts --cacert "$TLS/good.crt"
  assert_output "$TLS/good.crt"
  run -0 trusts --insecure
  assert_output null
  SSL_CERT_DIR=$TLS/none run redlock-cli doctor
  assert_line --regexp '^SERVER .* TRUSTS$'
  assert_line --regexp "$TLS/ca.crt"
}

@test "a certificate that no trusted CA has signed is refused" {
  start_tls_server good ca --tls-auth-clients no
  make_authority other
  assert_refuses 77 "set its CA with --cacert" -S "$SERVERS" --cacert "$TLS/other.crt"
  assert_refuses 77 "set its CA with --cacert" -S "$SERVERS"
}

@test "a certificate for another address or another name is refused" {
  make_certificate elsewhere ca DNS:elsewhere.example,IP:10.9.8.7
  start_tls_server elsewhere ca --tls-auth-clients no
  export REDLOCK_CACERT=$TLS/ca.crt
  assert_refuses 77 "its certificate is not for 127.0.0.1" -S "rediss://127.0.0.1:${SERVER_PORT[0]}"
  assert_refuses 77 "its certificate is not for localhost" -S "rediss://localhost:${SERVER_PORT[0]}"
  # An address is verified as an address: a name that looks like it does not count.
  make_certificate as_name ca DNS:127.0.0.1
  start_tls_server as_name ca --tls-auth-clients no
  assert_refuses 77 "its certificate is not for 127.0.0.1" -S "rediss://127.0.0.1:${SERVER_PORT[1]}"
}

@test "a certificate that has its name only in the subject is refused" {
  make_certificate localhost ca email:root@localhost
  start_tls_server localhost ca --tls-auth-clients no
  export REDLOCK_CACERT=$TLS/ca.crt
  assert_refuses 77 "not for localhost: no subjectAltName" -S "rediss://localhost:${SERVER_PORT[0]}"
  assert_refuses 77 "not for 127.0.0.1: no subjectAltName" -S "rediss://127.0.0.1:${SERVER_PORT[0]}"
}

@test "IPv6 addresses are verified too" {
  [[ -e /proc/net/if_inet6 ]] && grep -q '^0\{31\}1 ' /proc/net/if_inet6 ||
    skip "no IPv6 loopback here"
  make_certificate six ca IP:::1
  start_tls_server six ca --tls-auth-clients no
  run -0 redlock-cli run -S "rediss://[::1]:${SERVER_PORT[0]}" -k demo \
    --cacert "$TLS/ca.crt" -- true
  assert_refuses 77 "its certificate is not for 127.0.0.1" -S "$SERVERS" --cacert "$TLS/ca.crt"
}

@test "--sni overrides the name in the URL, and that name is verified" {
  make_certificate elsewhere ca DNS:elsewhere.example
  start_tls_server elsewhere ca --tls-auth-clients no
  run -0 redlock-cli run -S "$SERVERS" -k demo --cacert "$TLS/ca.crt" \
    --sni elsewhere.example -- true
  assert_refuses 77 "its certificate is not for other.example" -S "$SERVERS" \
    --cacert "$TLS/ca.crt" --sni other.example
  # A name of which nothing is left, such as "$UNSET.", must not match any name.
  assert_refuses 64 "does not begin with a dot" -S "$SERVERS" --cacert "$TLS/ca.crt" --sni .
  assert_refuses 77 "its certificate is not for" -S "$SERVERS" --cacert "$TLS/ca.crt" --sni '%x:y'
}

@test "the server name is sent if the host is a name, not if it is an address" {
  local port file=$BATS_TEST_TMPDIR/names
  start_background server /usr/bin/python3 "$BATS_TEST_DIRNAME/helper/sni.py" "$TLS/good.crt" \
    "$TLS/good.key"
  wait_for_stdout server
  port=$(head -n 1 "$(background_stdout server)")
  run -69 redlock-cli status -k demo -S "rediss://localhost:$port" --cacert "$TLS/ca.crt"
  wait_until grep -qx 'asked for localhost' "$(background_stdout server)"
  run -69 redlock-cli status -k demo -S "rediss://127.0.0.1:$port" --cacert "$TLS/ca.crt"
  wait_until grep -qx 'asked for nothing' "$(background_stdout server)"
}

@test "a certificate that has expired is refused" {
  make_certificate old ca IP:127.0.0.1 0
  start_tls_server old ca --tls-auth-clients no
  # It is valid during the second in which it was made.
  wait_until eval '! openssl x509 -checkend 0 -noout -in "$TLS/old.crt"'
  assert_refuses 77 "its certificate, or its CA's, has expired" -S "$SERVERS" --cacert "$TLS/ca.crt"
}

@test "a server that requires a client certificate refuses clients with none, or one of another CA" {
  start_tls_server good ca
  make_authority other
  make_certificate stranger other DNS:stranger
  local code
  for code in 1 2 3; do
    run --separate-stderr redlock-cli run -S "$SERVERS" -k demo -n --cacert "$TLS/ca.crt" \
      -- touch "$BATS_TEST_TMPDIR/ran"
    # Its refusal may be lost when it resets the connection.
    [[ $status == 77 || $status == 69 ]]
    assert_regex "$stderr" '\(?--cert'
    run --separate-stderr redlock-cli run -S "$SERVERS" -k demo -n --cacert "$TLS/ca.crt" \
      --cert "$TLS/stranger.crt" --cert-key "$TLS/stranger.key" -- touch "$BATS_TEST_TMPDIR/ran"
    [[ $status == 77 || $status == 69 ]]
    assert_regex "$stderr" '\(?--cert'
  done
  assert [ ! -e "$BATS_TEST_TMPDIR/ran" ]
}

@test "TLS before 1.2 is refused" {
  # The refusal is our own, and does not depend on the distribution's default for OpenSSL.
  printf '%s\n' 'openssl_conf = a' '[a]' 'ssl_conf = b' '[b]' 'system_default = c' '[c]' \
    'MinProtocol = None' \
    'CipherString = DEFAULT@SECLEVEL=0' >"$TLS/lax.cnf"
  export OPENSSL_CONF=$TLS/lax.cnf
  start_background server /usr/bin/python3 "$BATS_TEST_DIRNAME/helper/sni.py" "$TLS/good.crt" \
    "$TLS/good.key" old
  wait_for_stdout server
  assert_refuses 77 "TLS version that we accept" \
    -S "rediss://127.0.0.1:$(head -n 1 "$(background_stdout server)")" --cacert "$TLS/ca.crt"
}

@test "rediss:// to a port without TLS, and redis:// to one with it, name the right URL" {
  start_tcp_server
  start_tls_server good ca --tls-auth-clients no
  assert_refuses 69 "write redis://" -S "rediss://127.0.0.1:${SERVER_PORT[0]}" \
    --cacert "$TLS/ca.crt"
  assert_refuses 69 "write rediss://" -S "redis://127.0.0.1:${SERVER_PORT[1]}"
}

@test "a handshake that never ends is limited by the server timeout" {
  start_tls_server good ca --tls-auth-clients no
  pause_server 0
  start_background limit sleep 15
  assert_refuses 69 "no TLS handshake within 2s (--server-timeout); if the server does not use TLS, write redis://" \
    -S "$SERVERS" --cacert "$TLS/ca.crt" --server-timeout 2s
  refute background_has_ended limit
}

@test "two servers of five that never end the handshake delay nothing" {
  local nr
  for nr in 1 2 3 4 5; do start_tls_server good ca --tls-auth-clients no; done
  pause_server 0
  pause_server 4
  start_background limit sleep 15
  run -0 redlock-cli run -S "$SERVERS" -k demo --cacert "$TLS/ca.crt" \
    --server-timeout 20s -t 2m -- true
  refute background_has_ended limit
}

@test "a connection that breaks while the command runs is reopened" {
  start_tls_server good ca --tls-auth-clients no
  export REDLOCK_CACERT=$TLS/ca.crt
  hold holder -S "$SERVERS" -t 9s --server-timeout 1s
  force_reconnect 0
  release_hold holder
  assert_equal "$status" 0
  assert_unlocked demo 0
}

@test "a renewed CA, certificate and key are read when a connection is reopened" {
  make_certificate client ca DNS:client
  start_tls_server good ca
  cp "$TLS/ca.crt" "$TLS/trusted.crt"
  cp "$TLS/client.crt" "$TLS/own.crt"
  cp "$TLS/client.key" "$TLS/own.key"
  hold holder -S "$SERVERS" -t 30s --cacert "$TLS/trusted.crt" --cert "$TLS/own.crt" \
    --cert-key "$TLS/own.key"
  make_authority next
  make_certificate better next DNS:localhost,IP:127.0.0.1
  make_certificate other next DNS:client
  # Half of it is written.
  cp "$TLS/other.crt" "$TLS/own.crt"
  force_reconnect 0
  cp "$TLS/next.crt" "$TLS/trusted.crt"
  cp "$TLS/other.key" "$TLS/own.key"
  redis 0 config set tls-cert-file "$TLS/better.crt" tls-key-file "$TLS/better.key" \
    tls-ca-cert-file "$TLS/next.crt"
  force_reconnect 0
  release_hold holder
  assert_equal "$status" 0
  assert_unlocked demo 0
}

@test "the system's bundle is also read after our certificate was renewed" {
  make_certificate client ca DNS:client
  make_authority next
  make_certificate better next IP:127.0.0.1
  make_certificate other ca DNS:client
  make_directory ours ca
  start_tls_server good ca
  cp "$TLS/client.crt" "$TLS/own.crt"
  cp "$TLS/client.key" "$TLS/own.key"
  SSL_CERT_DIR=$TLS/ours SSL_CERT_FILE=$TLS/next.crt hold holder -S "$SERVERS" -t 30s \
    --cert "$TLS/own.crt" --cert-key "$TLS/own.key"
  cp "$TLS/other.crt" "$TLS/own.crt"
  cp "$TLS/other.key" "$TLS/own.key"
  redis 0 config set tls-cert-file "$TLS/better.crt" tls-key-file "$TLS/better.key"
  force_reconnect 0
  release_hold holder
  assert_equal "$status" 0
  assert_unlocked demo 0
}

@test "the bytes may arrive in pieces of any size" {
  start_tls_server good ca --tls-auth-clients no
  export REDLOCK_CACERT=$TLS/ca.crt REDLOCK_SERVER_TIMEOUT=40s
  local size
  for size in 1 2 3 5 7 64 1000; do
    start_relay "relay$size" "${SERVER_PORT[0]}" "$size"
    export REDLOCK_SERVER=rediss://127.0.0.1:$RELAY_PORT
    run -0 redlock-cli run -k demo -t 5m -- true
    # An answer of several records, and a question of several.
    run -0 redlock-cli run -k "$(printf '%04000d' 7)" -t 5m --note "$(printf '%0500d' 7)" \
      -- redlock-cli status
    assert_unlocked demo 0
  done
}

@test "a failed attempt is also undone over TLS" {
  start_tls_server good ca --tls-auth-clients no
  start_tls_server good ca --tls-auth-clients no
  start_tls_server good ca --tls-auth-clients no
  kill_server 1
  kill_server 2
  run -69 redlock-cli run -S "$SERVERS" --cacert "$TLS/ca.crt" -k demo -n -- true
  assert_unlocked demo 0
}

@test "a silent server gets the acquire and its undo when it wakes up" {
  start_tls_server good ca --tls-auth-clients no
  # Warm: the handshake is over when it falls silent.
  start_relay relay "${SERVER_PORT[0]}" 65536
  hold holder -S "rediss://127.0.0.1:$RELAY_PORT" --cacert "$TLS/ca.crt" \
    -t 9s --server-timeout 1s
  pause_server 0
  touch "$BATS_TEST_TMPDIR/holder.end"
  wait_background holder
  resume_server 0
  wait_for_no_key 0 demo
}

@test "--insecure verifies nothing, and says so every time" {
  make_certificate elsewhere ca DNS:elsewhere.example
  start_tls_server elsewhere ca --tls-auth-clients no
  local round
  for round in 1 2; do
    run -0 --separate-stderr redlock-cli run -q -S "$SERVERS" -k demo --insecure -- true
    assert_equal "$stderr" \
      "redlock-cli: --insecure: certificate verification is off: \
an attacker on the network can grant fake locks"
  done
  REDLOCK_INSECURE=1 run -0 --separate-stderr redlock-cli status -q -S "$SERVERS" -k demo
  assert_regex "$stderr" "^redlock-cli: REDLOCK_INSECURE: certificate verification is off"
  REDLOCK_INSECURE=0 run -77 redlock-cli status -q -S "$SERVERS" -k demo
}

@test "unusable files are refused before any server is asked" {
  local url=rediss://127.0.0.1:1 file
  echo nonsense >"$TLS/nonsense"
  local no_key="it has no usable private key"
  openssl ec -in "$TLS/good.key" -aes128 -passout pass:x -out "$TLS/locked.key" 2>/dev/null
  openssl genrsa -out "$TLS/rsa.key" 2>/dev/null
  assert_refuses 64 "--cacert: cannot use /nowhere/ca.crt: no such file" -S "$url" \
    --cacert /nowhere/ca.crt
  assert_refuses 64 "--cacert: cannot use $TLS/nonsense: " -S "$url" --cacert "$TLS/nonsense"
  assert_refuses 64 "--cacertdir: cannot use /nowhere: no such file" -S "$url" --cacertdir /nowhere
  assert_refuses 64 "--cert: cannot use /nowhere/c.crt: no such file" -S "$url" --cert /nowhere/c.crt
  for file in nonsense good.key; do
    assert_refuses 64 "--cert: cannot use $TLS/$file: it has no certificate" -S "$url" \
      --cert "$TLS/$file"
  done
  assert_refuses 64 "--cert: cannot use $TLS/good.crt: $no_key; name the key's file with --cert-key" \
    -S "$url" --cert "$TLS/good.crt"
  assert_refuses 64 "--cert-key: cannot use $TLS/good.crt: $no_key" -S "$url" \
    --cert "$TLS/good.crt" --cert-key "$TLS/good.crt"
  for file in ca.key rsa.key; do
    assert_refuses 64 "--cert-key: cannot use $TLS/$file: its key is not that of the certificate" \
      -S "$url" --cert "$TLS/good.crt" --cert-key "$TLS/$file"
  done
  assert_refuses 64 "--cert-key: a key needs its certificate" -S "$url" --cert-key "$TLS/good.key"
  # No question for a passphrase, not even with a terminal.
  run -64 script -qec \
    "redlock-cli run -S $url -k demo --cert $TLS/good.crt --cert-key $TLS/locked.key -- true" \
    /dev/null
  assert_output --partial "--cert-key: cannot use $TLS/locked.key: its key needs a passphrase"
  REDLOCK_CACERT=/nowhere/ca.crt assert_refuses 78 \
    "REDLOCK_CACERT: cannot use /nowhere/ca.crt" -S "$url"
}

@test "TLS options without a TLS server are refused on the command line, and harmless as settings" {
  start_servers 1
  assert_refuses 64 "--cacert: no server is named with rediss://" -S "$SERVERS" \
    --cacert "$TLS/ca.crt"
  assert_refuses 64 "--insecure: no server is named with rediss://" -S "$SERVERS" --insecure
  REDLOCK_CACERT=$TLS/ca.crt run -0 redlock-cli run -S "$SERVERS" -k demo -- true
}

@test "a run without TLS does not load it" {
  start_servers 1
  traced redlock-cli run -S "$SERVERS" -k demo -- true
  assert_opened libc.so
  refute_opened libssl
  refute_opened libcrypto
}

@test "a server that dies in the middle of a connection does no harm" {
  start_tls_server good ca --tls-auth-clients no
  export REDLOCK_CACERT=$TLS/ca.crt REDLOCK_SERVER=$SERVERS
  # Whose command runs: before that, the key may be that of an attempt that is undone.
  hold holder -t 9s --server-timeout 1s
  kill_server 0
  wait_background holder
  assert_equal "$status" 79
}
