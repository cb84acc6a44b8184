#!/usr/bin/env bats
# packaging/install.sh: it installs what a release has, or nothing. The releases are made for the
# tests, of the program under test.
load helper/common

setup() {
  common_setup
  INSTALL=$BATS_TEST_DIRNAME/../../packaging/install.sh
  ARCH=$(uname -m)
  D=$BATS_TEST_TMPDIR
  export PATH=$PATH:$HOME/.local/bin
  make_release "$D/release" 1.2.3
}

# pack DIRECTORY VERSION < PROGRAM: its tarball there.
pack() {
  local name=redlock-cli-$2-linux-$ARCH
  mkdir -p "$D/tree/$name/bin" "$1"
  cat >"$D/tree/$name/bin/redlock-cli"
  chmod 755 "$D/tree/$name/bin/redlock-cli"
  tar -C "$D/tree" -czf "$1/$name.tar.gz" "$name"
}
sign_off() { (cd "$1" && sha256sum redlock-cli-* >SHA256SUMS); }

# make_release DIRECTORY VERSION: a program of that version, which is ours by what it contains.
make_release() {
  pack "$1" "$2" <<END
#!/bin/sh
# REDLOCK_HELD
echo "redlock-cli $2"
echo "commit: none"
END
  sign_off "$1"
}

# refused STATUS TEXT [ARGUMENT…]: nothing is installed or left, and what was there stays.
refused() {
  local before
  before=$(what_is_there)
  run -"$1" sh "$INSTALL" --from "file://$D/release" "${@:3}"
  assert_output --partial "$2"
  assert_output --partial "nothing was installed"
  assert_equal "$(what_is_there)" "$before"
}
what_is_there() { find "$HOME" -printf '%p %y %m %i\n' -type f -printf '%T@ %s\n'; }

@test "it installs the program for this architecture, and says what it did" {
  # Not as root, who has another directory.
  mkdir "$D/user"
  printf '#!/bin/sh\necho 1000\n' >"$D/user/id"
  chmod 755 "$D/user/id"
  PATH=$D/user:$PATH run -0 sh "$INSTALL" --from "file://$D/release"
  assert_line "install: installed redlock-cli 1.2.3 in $HOME/.local/bin"
  run -0 sh "$INSTALL" --from "file://$D/release/" --dir "$D/new/bin" --version v1.2.3
  assert_line "install: installed redlock-cli 1.2.3 in $D/new/bin"
  assert_line "install: $D/new/bin is not in PATH"
  assert_equal "$("$D/new/bin/redlock-cli" --version | head -n 1)" "redlock-cli 1.2.3"
  assert_equal "$(ls -A "$D/new/bin")" redlock-cli
}

@test "it replaces an older redlock-cli, also the real one, by the same command" {
  mkdir "$D/bin"
  cp "$REDLOCK_CLI" "$D/bin/redlock-cli"
  run -0 sh "$INSTALL" --from "file://$D/release" --dir "$D/bin"
  make_release "$D/release" 1.2.4
  rm "$D/release"/*1.2.3*
  sign_off "$D/release"
  run -0 sh "$INSTALL" --from "file://$D/release" --dir "$D/bin"
  assert_equal "$("$D/bin/redlock-cli" --version | head -n 1)" "redlock-cli 1.2.4"
}

@test "it installs the program under test" {
  local version
  version=$(redlock-cli --version | sed -n '1s/.* //p')
  rm -r "$D/release"
  pack "$D/release" "$version" <"$REDLOCK_CLI"
  sign_off "$D/release"
  run -0 sh "$INSTALL" --from "file://$D/release" --dir "$D/bin"
  cmp "$REDLOCK_CLI" "$D/bin/redlock-cli"
}

@test "another program is not overwritten" {
  mkdir "$HOME/bin"
  printf '#!/bin/sh\necho mine\n' >"$HOME/bin/redlock-cli"
  refused 73 "is another program" --dir "$HOME/bin"
  rm "$HOME/bin/redlock-cli"
  mkdir "$HOME/bin/redlock-cli"
  refused 73 "is another program" --dir "$HOME/bin"
  rmdir "$HOME/bin/redlock-cli"
  ln -s /nowhere "$HOME/bin/redlock-cli"
  refused 73 "is another program" --dir "$HOME/bin"
}

@test "a directory that it cannot write to" {
  : >"$HOME/file"
  refused 73 "cannot make" --dir "$HOME/file/bin"
}

@test "a file that is not what the sums say is not installed" {
  local tarball
  tarball=$(echo "$D"/release/*.tar.gz)
  cp "$tarball" "$D/whole"
  # Cut off at any place, changed in one byte, or longer.
  local size
  size=$(stat -c %s "$tarball")
  for length in 0 1 $((size / 2)) $((size - 1)); do
    head -c "$length" "$D/whole" >"$tarball"
    refused 65 "is not what SHA256SUMS says" --dir "$HOME/bin"
  done
  { head -c 20 "$D/whole"; printf x; tail -c +22 "$D/whole"; } >"$tarball"
  refused 65 "is not what SHA256SUMS says" --dir "$HOME/bin"
  { cat "$D/whole"; echo; } >"$tarball"
  refused 65 "is not what SHA256SUMS says" --dir "$HOME/bin"
  rm "$tarball"
  refused 69 "cannot fetch" --dir "$HOME/bin"
}

@test "wrong sums are refused" {
  local sums=$D/release/SHA256SUMS
  cp "$sums" "$D/right"
  : >"$sums"
  refused 65 "names no file for" --dir "$HOME/bin"
  sed "s/linux-$ARCH/linux-other/" "$D/right" >"$sums"
  refused 65 "names no file for" --dir "$HOME/bin"
  head -c 70 "$D/right" >"$sums"
  refused 65 "names no file for" --dir "$HOME/bin"
  { cat "$D/right"; sed 's/1\.2\.3/1.2.4/' "$D/right"; } >"$sums"
  refused 65 "names several files" --dir "$HOME/bin"
  echo '<html>not found</html>' >"$sums"
  refused 65 "names no file for" --dir "$HOME/bin"
  rm "$sums"
  refused 69 "cannot fetch" --dir "$HOME/bin"
}

@test "a release of another version, or with another program in it, is refused" {
  refused 65 "has version 1.2.3, not 1.2.2" --dir "$HOME/bin" --version 1.2.2
  pack "$D/release" 1.2.3 <<<$'#!/bin/sh\necho redlock-cli 9.9.9'
  sign_off "$D/release"
  refused 65 "another version" --dir "$HOME/bin"
  pack "$D/release" 1.2.3 <<<$'#!/no/such/interpreter\n'
  sign_off "$D/release"
  refused 71 "does not run" --dir "$HOME/bin"
  tar -C "$D" -czf "$D/release/redlock-cli-1.2.3-linux-$ARCH.tar.gz" right 2>/dev/null ||
    tar -C / -czf "$D/release/redlock-cli-1.2.3-linux-$ARCH.tar.gz" etc/hostname
  sign_off "$D/release"
  refused 65 "has no program" --dir "$HOME/bin"
}

@test "unknown machines and arguments are refused" {
  mkdir "$D/fake"
  printf '#!/bin/sh\n[ "$1" = -s ] && echo Linux || echo riscv64\n' >"$D/fake/uname"
  chmod 755 "$D/fake/uname"
  PATH=$D/fake:$PATH refused 69 "there is no file for riscv64" --dir "$HOME/bin"
  printf '#!/bin/sh\necho Darwin\n' >"$D/fake/uname"
  PATH=$D/fake:$PATH refused 69 "runs on Linux only" --dir "$HOME/bin"
  refused 64 "unknown argument --bogus" --bogus
  refused 64 "--dir needs a value" --dir
}

@test "a script that was cut off does nothing" {
  local lines count
  lines=$(wc -l <"$INSTALL")
  for ((count = 1; count < lines; count += 7)); do
    head -n "$count" "$INSTALL" >"$D/cut"
    sh "$D/cut" --from "file://$D/release" --dir "$HOME/bin" >/dev/null 2>&1 || true
    assert [ ! -e "$HOME/bin" ]
  done
}

# --- Over a network ---

# serve: the release at $URL, by a server that cuts off the file whose name is in $D/cut.
serve() {
  start_background web /usr/bin/python3 -u -c '
import http.server, os, sys
os.chdir(sys.argv[1])
class Handler(http.server.SimpleHTTPRequestHandler):
    def copyfile(self, source, output):
        cut = sys.argv[2] + "/cut"
        if os.path.exists(cut) and open(cut).read() in self.path:
            output.write(source.read(100))
        else:
            super().copyfile(source, output)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port)
server.serve_forever()' "$D/release" "$D"
  wait_for_stdout web
  URL=http://127.0.0.1:$(<"$(background_stdout web)")
}

# fetch_with TOOL: of curl and wget only TOOL is in PATH.
fetch_with() {
  mkdir -p "$D/$1"
  local tool
  for tool in sh "$1" tar gzip sha256sum uname id mktemp rm mkdir chmod cp mv sed grep; do
    ln -sf "$(type -P "$tool")" "$D/$1/$tool"
  done
  ONLY=$D/$1
}

@test "it fetches with curl or with wget, and refuses what was cut off" {
  local tool
  serve
  for tool in curl wget; do
    command -v "$tool" >/dev/null || continue
    fetch_with "$tool"
    PATH=$ONLY run -0 sh "$INSTALL" --from "$URL" --dir "$D/by-$tool"
    assert [ -x "$D/by-$tool/redlock-cli" ]
    PATH=$ONLY run -69 sh "$INSTALL" --from "$URL/nowhere" --dir "$D/none"
    echo -n tar.gz >"$D/cut"
    PATH=$ONLY run sh "$INSTALL" --from "$URL" --dir "$D/none"
    assert_regex "$status" '^(65|69)$'
    rm "$D/cut"
    assert [ ! -e "$D/none" ]
  done
  fetch_with true
  PATH=$ONLY run -69 sh "$INSTALL" --from "$URL" --dir "$D/none"
  assert_output --partial "neither curl nor wget"
}

# --- Signatures ---

make_key() {
  mkdir -m 700 "$D/$1"
  gpg --homedir "$D/$1" --batch --quiet --passphrase '' --quick-gen-key "$1@example.org" ed25519 \
    sign never 2>/dev/null
  gpg --homedir "$D/$1" --export --armor >"$D/$1.asc"
}
sign_with() {
  gpg --homedir "$D/$1" --batch --yes --armor --detach-sign "$D/release/SHA256SUMS" 2>/dev/null
}
end_agents() { for key in owner other; do gpgconf --homedir "$D/$key" --kill all 2>/dev/null || true; done; }

@test "a signature is checked: the right one, a wrong one, another's, none" {
  command -v gpg >/dev/null || skip "gpg is not installed"
  make_key owner
  make_key other
  refused 77 "there is no signature" --dir "$HOME/bin" --key "$D/owner.asc"
  sign_with owner
  run -0 sh "$INSTALL" --from "file://$D/release" --dir "$D/bin" --key "$D/owner.asc"
  assert_line --regexp "^install: the signature is right, by the key [0-9A-F]{40}$"
  refused 77 "is not signed with" --dir "$HOME/bin" --key "$D/other.asc"
  refused 66 "is no public key" --dir "$HOME/bin" --key "$INSTALL"
  refused 66 "cannot read" --dir "$HOME/bin" --key "$D/nowhere"
  GNUPGHOME=$D/other run -0 sh "$INSTALL" --from "file://$D/release" --dir "$D/bin"
  assert_line --partial "does not know its key"
  echo "$(printf '0%.0s' {1..64})  redlock-cli-none" >>"$D/release/SHA256SUMS"
  refused 77 "signature of SHA256SUMS is wrong" --dir "$HOME/bin" --key "$D/owner.asc"
  GNUPGHOME=$D/owner refused 77 "signature of SHA256SUMS is wrong" --dir "$HOME/bin"
  end_agents
}
