#!/usr/bin/env bats
# sentinels:// and clusters://: TLS to every server on the way, and what is announced is verified.
load helper/common
load helper/tls
load helper/deployments

setup() {
  common_setup
  # A refusal must arrive within one attempt, which includes several handshakes.
  export REDLOCK_SERVER_TIMEOUT=4s
  prepare_tls
  make_authority ca
  make_certificate good ca DNS:localhost,IP:127.0.0.1
  # What the URL says, and not what is announced.
  make_certificate named ca DNS:localhost
}

# start_tls_cluster CERTIFICATE: a cluster of one server, with TLS only; its URL names localhost, it
# announces 127.0.0.1.
start_tls_cluster() {
  start_tls_server "$1" ca --tls-auth-clients no --tls-cluster yes --cluster-enabled yes \
    --cluster-config-file nodes.conf \
    --cluster-announce-ip 127.0.0.1
  redis 0 cluster addslotsrange 0 16383 >/dev/null
  wait_until cluster_is ok 0
  URL=clusters://localhost:${SERVER_PORT[0]}
}

# start_tls_sentinel CERTIFICATE: a master with TLS only, and a sentinel with TLS too.
start_tls_sentinel() {
  start_tls_server "$1" ca --tls-auth-clients no
  start_sentinels 1 'tls-replication yes' "tls-cert-file $TLS/good.crt" \
    "tls-key-file $TLS/good.key" "tls-ca-cert-file $TLS/ca.crt" \
    'tls-auth-clients no'
  URL=sentinels://localhost:${SERVER_PORT[SENTINEL]}/mymaster
}

@test "a cluster's servers are reached with TLS and verified by their announced address" {
  start_tls_cluster good
  run -0 redlock-cli run -S "$URL" --cacert "$TLS/ca.crt" -k demo -n -- true
  assert_unlocked demo 0
  assert_refused 77 "certificate" redlock-cli run -S "$URL" -k demo -n -- true
  assert_refused 69 "clusters://" redlock-cli run -S "${URL/clusters/cluster}" -k demo -n -- true
}

@test "a cluster's server whose certificate is not for its announced address gets no vote" {
  start_tls_cluster named
  assert_refused 77 "its certificate is not for 127.0.0.1" \
    redlock-cli run -S "$URL" --cacert "$TLS/ca.crt" -k demo -n -- true
  run -0 redlock-cli run -S "$URL" --cacert "$TLS/ca.crt" --sni localhost -k demo -n -- true
}

@test "a sentinel and its master are reached with TLS and verified" {
  SENTINEL_TLS=yes start_tls_sentinel good
  run -0 redlock-cli run -S "$URL" --cacert "$TLS/ca.crt" -k demo -n -- true
  assert_unlocked demo 0
  assert_refused 77 "the sentinel localhost" redlock-cli run -S "$URL" -k demo -n -- true
}

@test "a master whose certificate is not for the address that the sentinel announces gets no vote" {
  SENTINEL_TLS=yes start_tls_sentinel named
  assert_refused 77 "its certificate is not for 127.0.0.1" \
    redlock-cli run -S "$URL" --cacert "$TLS/ca.crt" -k demo -n -- true
}
