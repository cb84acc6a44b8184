#!/usr/bin/env bats
# bats file_tags=smoke
# Any bad answer of a cluster about the place of its keys: no vote, an exit status, and one line
# that explains it.
load helper/common

# means CODE TEXT SLOTS ERROR: see scripted_cluster.py.
means() {
  local name=scripted$((++scripted)) url
  start_background "$name" \
    /usr/bin/python3 "$BATS_TEST_DIRNAME/helper/scripted_cluster.py" "$3" "$4"
  wait_for_stdout "$name"
  url=cluster://127.0.0.1:$(<"$(background_stdout "$name")")
  assert_refused "$1" "$2" redlock-cli run -S "$url" -k demo -n --server-timeout 3s \
    -- touch "$BATS_TEST_TMPDIR/ran"
  # As one of three it blocks no client.
  ((${#SERVER_PID[@]})) || return 0
  run -0 redlock-cli run -S "$url,${SERVER_URL[0]},${SERVER_URL[1]}" -k demo -n \
    --server-timeout 3s -- true
  assert [ ! -e "$BATS_TEST_TMPDIR/ran" ]
  assert_unlocked demo 0 1
}

@test "redirects that lead nowhere" {
  start_servers 2
  means 78 "sent an invalid redirect: MOVED 903 127.0.0.1:0" all 'MOVED 903 127.0.0.1:0'
  means 78 "sent an invalid redirect: MOVED 903 :0" all 'MOVED 903 :0'
  means 78 "announces ? in place of its servers' host names" all 'MOVED 903 ?:7000'
  means 78 "sent an invalid redirect: ASK 903 127.0.0.1:65536" all 'ASK 903 127.0.0.1:65536'
  means 78 "sent an invalid redirect: ASK 903 nonsense" all 'ASK 903 nonsense'
  means 78 'sent an invalid redirect: MOVED 903 \x1b[2J:0' all $'MOVED 903 \e[2J:0'
  means 69 "127.0.0.1:1: cannot connect" all 'MOVED 903 127.0.0.1:1'
}

@test "redirects without an end" {
  start_servers 2
  means 69 "more than 5 redirects" all 'MOVED 903 127.0.0.1:{port}'
  means 69 "more than 5 redirects" all 'ASK 903 127.0.0.1:{port}'
  # An empty host means that of the redirecting server.
  means 69 "more than 5 redirects" all 'MOVED 903 :{port}'
}

@test "a cluster that cannot serve the key" {
  start_servers 2
  means 69 "its cluster is down" all 'CLUSTERDOWN The cluster is down'
  means 69 "its cluster is moving this key" all \
    'TRYAGAIN Multiple keys request during rehashing of slot'
  means 69 "no server of its cluster has the slot" \
    '*1\r\n*3\r\n:1000\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:{port}\r\n' x
  means 69 "no server of its cluster has the slot" '*0\r\n' x
  means 69 "no server of its cluster has the slot" \
    '*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:0\r\n' x
  means 77 "NOPERM" "-NOPERM this user has no permissions to run the 'cluster|slots' command\r\n" x
}

@test "a malformed CLUSTER SLOTS reply is not a vote" {
  start_servers 2
  local bytes
  for bytes in '+OK\r\n' ':1\r\n' '*1\r\n:1\r\n' '*1\r\n*2\r\n:0\r\n:1\r\n' \
    '*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n$1\r\nh\r\n:1\r\n' \
    '*1\r\n*3\r\n:-1\r\n:1\r\n*2\r\n$1\r\nh\r\n:1\r\n' \
    '*1\r\n*3\r\n:9\r\n:1\r\n*2\r\n$1\r\nh\r\n:1\r\n'; do
    means 69 "malformed CLUSTER SLOTS reply" "$bytes" x
  done
}
