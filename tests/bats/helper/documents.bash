# shellcheck shell=bash
# For tests that run the examples of documents: one server, and the programs that they name.

setup_documents() {
  setup_one_server
  # On a busy machine a single attempt needs as much time as the default ttl allows.
  export REDLOCK_SERVER_TIMEOUT=4s
  # Programs that a test makes come first, and the documents' paths are replaced by private ones.
  BIN=$BATS_TEST_TMPDIR/bin
  mkdir "$BIN"
  PATH=$BIN:$PATH
  cd "$BATS_TEST_TMPDIR" || return
}

# program NAME: a program in PATH, from stdin.
program() {
  cat >"$BIN/$1"
  chmod 755 "$BIN/$1"
}

# A job that reports its start and runs until it is released.
slow_job() {
  program "$1" <<'END_OF_JOB'
#!/bin/sh
echo run >>runs
until [ -e enough ]; do sleep 0.1; done
END_OF_JOB
}

count_runs() { [[ $(wc -l <runs) == "$1" ]]; }

# block FILE NAME: the text of the fenced block of $DOCS/FILE with this name after its language,
# ```sh run=NAME; without common indentation.
block() {
  awk -v name="run=$2" '
    /^ *```/ { if (inside) exit; inside = $2 == name; found = found || inside; next }
    inside
    END { exit !found }' "$DOCS/$1" || fail "$1 has no block $2"
}
