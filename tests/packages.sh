#!/usr/bin/env bash
# Builds what a release offers and tries it: the .deb in clean Debian roots (installed, used as the
# documents and the manual tell, upgraded, removed with nothing left, the static file beside it), the
# README's first command in such a root, the .rpm unpacked, the root file system of a container,
# install.sh, the static file linked anew, lintian, the checksums, and that a second build elsewhere
# gives the same bytes. tests/anywhere.sh tries the static file in other roots.
# usage: tests/packages.sh [--dist DIRECTORY] [SUITE…]   (as root; SUITE: bookworm, trixie and sid,
# unless named)
# --dist: tries what packaging/release.sh has made there, and builds nothing.
# On demand, as it takes many minutes: `cmake --build --preset release --target check-packages`. The
# roots come from the mirror that this machine's apt uses. What is built is the last commit.
# shellcheck disable=SC2016  # the roots' shells expand
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
. packaging/dependencies.sh
. tests/clean_root.sh
export LC_ALL=C.UTF-8

dist=
if [[ ${1-} == --dist ]]; then
  dist=$(realpath "${2:?a directory}")
  shift 2
fi
suites=(bookworm trixie sid)
(($# == 0)) || suites=("$@")
((EUID == 0)) || { echo "packages.sh: needs root, to make roots" >&2; exit 77; }
ensure_packages "${BUILD_PACKAGES[@]}" debootstrap lintian rpm cpio git file python3

work=$(mktemp -d /tmp/redlock-packages.XXXXXX)
chmod 755 "$work"
clean_up() { rm -rf --one-file-system "$work"; }
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# make_release NAME: everything, of a fresh clone in a directory of this name.
make_release() {
  git clone -q "$root" "$work/$1"
  (cd "$work/$1" && packaging/release.sh "$work/$1-dist")
}

export DEBFULLNAME=${DEBFULLNAME:-Package Test} DEBEMAIL=${DEBEMAIL:-package-test@debian.org}
rebuild=
if [[ -z $dist ]]; then
  rebuild=1
  dist=$work/first-dist
  check "a release is made with one command" make_release first
fi
[[ -s $dist/SHA256SUMS ]] || { echo "packages.sh: there is no release in $dist" >&2; exit 1; }
# A release may have other architectures, too.
deb=$(echo "$dist"/*_"$(dpkg --print-architecture)".deb)
rpm=$(echo "$dist"/*."$(uname -m)".rpm)
static=$(find "$dist" -name "redlock-cli-*-linux-$(uname -m).tar.gz")
relink=$(find "$dist" -name "redlock-cli-*-linux-$(uname -m)-relink.tar.gz")
source=$(find "$dist" -name 'redlock-cli-*.tar.gz' ! -name '*-linux-*')

sums_fit() (
  cd "$dist" && sha256sum -c SHA256SUMS &&
    diff <(sed 's/^[0-9a-f]*  //' SHA256SUMS) <(find . -type f ! -name SHA256SUMS -printf '%P\n' | sort)
)
has_all_files() (
  cd "$dist"
  local architectures=(*.deb)
  (($(wc -l <SHA256SUMS) == 3 + 5 * ${#architectures[@]}))
)
check "SHA256SUMS fits, and names every file" sums_fit
check "no file is missing" has_all_files
check "lintian has nothing to say" lintian --fail-on error,warning,info --info --display-info "$deb"

# components HOW FILE: with OpenSSL in HOW as it is related to the program.
components() {
  python3 -c '
import json, sys
document = json.load(open(sys.argv[2]))
names = {package["name"] for package in document["packages"]}
assert document["spdxVersion"] == "SPDX-2.3"
assert {"redlock-cli", "hiredis", "Lua", "libmd", "Asio", "fmt", "CLI11", "toml++", "OpenSSL",
        "libstdc++"} <= names, names
assert ("glibc" in names) == (sys.argv[1] == "STATIC_LINK"), names
known = {package["SPDXID"] for package in document["packages"]} | {"SPDXRef-DOCUMENT"}
for relation in document["relationships"]:
    assert relation["spdxElementId"] in known and relation["relatedSpdxElement"] in known, relation
    if "SPDXRef-OpenSSL" in relation.values():
        assert relation["relationshipType"] == sys.argv[1], relation
' "$@"
}
check "the list of components of the packages is SPDX, and has OpenSSL as what is loaded" \
  components OPTIONAL_DEPENDENCY_OF "${source%.tar.gz}.spdx.json"
check "the list of components of the static file has OpenSSL and libc" \
  components STATIC_LINK "${static%.tar.gz}.spdx.json"

# --- The static file ---

install_static() {
  sh "$dist/install.sh" --from "file://$dist" --dir "$work/bin" && "$work/bin/redlock-cli" --version
}
check "install.sh installs the static file" install_static
needs_nothing() { ! readelf --wide --program-headers --dynamic "$1" | grep -E 'INTERP|NEEDED'; }
check "it needs no library" needs_nothing "$work/bin/redlock-cli"
check "it is hardened" tests/hardening.sh "$work/bin/redlock-cli"

# As the licence of libc lets everybody do.
link_anew() {
  mkdir "$work/relink"
  tar -C "$work/relink" -xzf "$relink" --strip-components=1
  grep -E '^libc6-dev ' "$work/relink/BUILT-WITH" && "$work/relink/relink.sh" &&
    diff <("$work/relink/redlock-cli" --version) <("$work/bin/redlock-cli" --version) &&
    needs_nothing "$work/relink/redlock-cli" &&
    "$work/relink/redlock-cli" run -S local: -k relink -- true
}
check "it can be linked with another libc" link_anew

# --- The .rpm ---

unpack_rpm() {
  mkdir "$work/rpm"
  (cd "$work/rpm" && rpm2cpio "$rpm" | cpio -idm --quiet)
}
check "the .rpm can be unpacked" unpack_rpm
check "the program in it works" "$work/rpm/usr/bin/redlock-cli" --version
check "it is hardened" tests/hardening.sh "$work/rpm/usr/bin/redlock-cli"

# Nothing but libc, which every distribution has.
rpm_needs_libc_alone() {
  local needs
  needs=$(rpm -qp --requires "$rpm" |
    grep -vE '^(lib(c|m)\.so\.6|ld-linux-[a-z0-9-]+\.so\.[0-9])(\(|$)|'\
'^rpmlib\(|^rtld\(GNU_HASH\)' || true)
  [[ -z $needs ]] || { echo "needs: $needs"; return 1; }
}
check "the .rpm needs libc alone" rpm_needs_libc_alone
# Among the needs are also features of the loader (GLIBC_ABI_…), which came later.
needs_no_newer_glibc() {
  local needs
  needs=$(readelf --wide --version-info "$work/rpm/usr/bin/redlock-cli" |
    grep -oE 'GLIBC_[A-Z0-9_.]+' | sort -uV)
  echo "needs: $needs"
  [[ -n $needs && $(printf '%s\nGLIBC_2.34\n' "$needs" | sort -V | tail -n 1) == GLIBC_2.34 ]]
}
check "the program needs no glibc newer than 2.34" needs_no_newer_glibc
rpm_owns_no_directory_of_others() {
  local directories
  directories=$(rpm -qp --queryformat '[%{FILEMODES:perms} %{FILENAMES}\n]' "$rpm" |
    sed -n 's/^d[^ ]* //p' | grep -v '/doc/redlock-cli' || true)
  [[ -z $directories ]] || { echo "owns: $directories"; return 1; }
}
check "the .rpm owns no directory of others" rpm_owns_no_directory_of_others

# --- A container ---

ensure_packages redis-server redis-tools openssl ca-certificates
check "the root file system of a container, with the program as process 1" tests/container.sh \
  "$work/bin/redlock-cli"

# --- A release that does not fit ---

# A fresh clone, whose commit has the tag of another version.
wrong_tag_is_refused() {
  git clone -q "$root" "$work/wrong-tag"
  git -C "$work/wrong-tag" tag v99.0.0
  local code=0
  (cd "$work/wrong-tag" && packaging/release.sh "$work/wrong-tag-dist") || code=$?
  ((code == 65)) && [[ ! -e $work/wrong-tag-dist ]]
}
check "a tag that is not the version's is refused" wrong_tag_is_refused

# --- The .deb, in clean roots ---

# The same package as of an earlier version, to upgrade from.
make_earlier() {
  dpkg-deb -R "$deb" "$work/earlier"
  sed -i 's/^Version: .*/Version: 0.0.1-1/' "$work/earlier/DEBIAN/control"
  dpkg-deb --root-owner-group -b "$work/earlier" "$work/earlier.deb"
}
check "an earlier version, to upgrade from" make_earlier

# What is in the root, but for what a package manager keeps for itself.
contents() {
  (cd "$1" &&
    find . -xdev \( -path ./proc -o -path ./sys -o -path ./dev -o -path ./tmp \
      -o -path ./var/lib/dpkg -o -path ./var/log -o -path ./var/cache -o -path ./var/lib/apt \
      -o -path ./etc/ld.so.cache \) -prune -o -print | sort)
}

nothing_left() {
  contents "$work/$1" >"$work/$1.after"
  diff "$work/$1.before" "$work/$1.after"
}

# unpack_source ROOT: the source that the release offers, as /tmp/source there.
unpack_source() {
  mkdir "$work/$1/tmp/source"
  tar -C "$work/$1/tmp/source" -xzf "$source" --strip-components=1
}

# A port at which no process listens now.
free_port() {
  python3 -c '
import socket
with socket.socket() as server:
    server.bind(("127.0.0.1", 0))
    print(server.getsockname()[1])'
}

packages_of() {
  dpkg-query --admindir "$work/$1/var/lib/dpkg" -W -f '${Package} ${Version}\n' | sort
}

# try_first_command SUITE ROOT: the README's for a tree, as it is printed, with nothing but the source.
try_first_command() {
  local command began=$SECONDS
  unpack_source "$2"
  command=$(grep -m 1 -x './packaging/quickstart\.sh' "$work/$2/tmp/source/README.md")
  packages_of "$2" >"$work/$2.packages"
  check "$1: the README's first command for a tree, $command" in_root "$2" "
    cd /tmp/source
    $command || { code=\$?; cat build/quickstart.log; exit \$code; }"
  echo "          It took $((SECONDS - began)) seconds, and installed:"
  packages_of "$2" | comm -13 "$work/$2.packages" - | paste -sd ' ' | fold -sw 90 |
    sed 's/^/            /'
  echo "          It printed:"
  sed 's/^/            /' "$work/log"
}

# try_installing SUITE ROOT: as the README tells for those who want no script to call sudo. The root
# has the packages by now, and no sudo, which root needs for nothing.
try_installing() {
  check "$1: the README's commands to install by hand" in_root "$2" '
    printf "#!/bin/sh\nexec \"\$@\"\n" >/usr/bin/sudo
    chmod 755 /usr/bin/sudo
    cd /tmp/source
    sed -n "/^\`\`\`sh run=install/,/^\`\`\`\$/p" README.md | grep -v "^\`\`\`" >install.sh
    rm -rf build
    sh -e install.sh
    redlock-cli --version'
}

# try_examples SUITE: those of the README, the documents and the manual, with the program that is
# installed. Those that are skipped are named at the end, and a failure.
try_examples() {
  check "$1: the examples of the README, the documents and the manual" in_root "$1" '
    cd /tmp/source/tests/bats
    code=0
    REDLOCK_CLI=/usr/bin/redlock-cli bats --formatter tap readme.bats documents.bats manual.bats \
      >/tmp/tap || code=$?
    cat /tmp/tap
    ! sed -n "/^not ok/,/^ok/p" /tmp/tap | grep . || code=1
    ! grep "# skip" /tmp/tap || code=1
    exit "$code"'
  awk 'NR == 1 { sub("1..", ""); of = $0 } /^ok / && !/# skip/ { ++succeeded }
    END { print "          " succeeded + 0 " of " of " succeeded" }' "$work/$1/tmp/tap"
}

for suite in "${suites[@]}"; do
  if ! make_root "$suite"; then
    echo "SKIPPED $suite: the mirror gives us no root: $(tail -n 1 "$work/log")"
    continue
  fi
  cp -a "$work/$suite" "$work/$suite-source"
  contents "$work/$suite" >"$work/$suite.before"
  cp "$deb" "$work/$suite/tmp/redlock-cli.deb"
  cp "$work/earlier.deb" "$work/$suite/tmp/earlier.deb"
  cp "$static" "$work/$suite/tmp/static.tar.gz"

  check "$suite: the static file starts on a bare root" in_root "$suite" '
    mkdir /tmp/static
    tar -C /tmp/static -xzf /tmp/static.tar.gz --strip-components=1
    /tmp/static/bin/redlock-cli --version
    /tmp/static/bin/redlock-cli run -S local: -k a -- true
    rm -rf /tmp/static'
  check "$suite: the .deb installs on a bare root" in_root "$suite" '
    dpkg -i /tmp/earlier.deb
    dpkg -s redlock-cli | grep "^Version: 0.0.1"'
  check "$suite: it is upgraded" in_root "$suite" '
    dpkg -i /tmp/redlock-cli.deb
    dpkg -s redlock-cli | grep "^Version: [1-9]\|^Version: 0\.[1-9]"'
  check "$suite: it locks on this host" in_root "$suite" '
    export REDLOCK_SERVER=local:
    redlock-cli run -k deploy -- sh -c "redlock-cli status deploy --exit-code -q || test \$? = 75"
    redlock-cli acquire -k deploy --ttl 1m >/dev/null
    code=0
    redlock-cli run -k deploy -n -- true || code=$?
    test "$code" = 75
    redlock-cli release deploy --force
    redlock-cli status deploy --exit-code -q
    redlock-cli completion bash | cmp - /usr/share/bash-completion/completions/redlock-cli
    cp /usr/share/doc/redlock-cli/examples/redlock-cli.toml /etc/redlock-cli.toml
    env -u REDLOCK_SERVER redlock-cli doctor --settings | grep "redis://localhost"
    rm /etc/redlock-cli.toml'
  check "$suite: removed, it leaves nothing" in_root "$suite" 'dpkg --purge redlock-cli'
  check "$suite: nothing is left" nothing_left "$suite"

  # As its users do, with what is recommended: TLS and servers.
  check "$suite: apt-get installs it with what it recommends" in_root "$suite" '
    printf "#!/bin/sh\nexit 101\n" >/usr/sbin/policy-rc.d
    chmod 755 /usr/sbin/policy-rc.d
    apt-get -q=2 update
    apt-get -q -y install /tmp/redlock-cli.deb
    test -n "$(ls /usr/lib/*/libssl.so.3)"
    apt-get -q -y --no-install-recommends install redis-server ||
      apt-get -q -y --no-install-recommends install valkey-server'
  port=$(free_port)
  check "$suite: it locks with this suite's server, and over TLS" in_root "$suite" '
    port='"$port"'
    server=$(command -v redis-server || command -v valkey-server)
    client=$(command -v redis-cli || command -v valkey-cli)
    openssl req -x509 -newkey rsa:2048 -nodes -keyout /tmp/key -out /tmp/cert -days 2 \
      -subj /CN=test -addext subjectAltName=DNS:localhost 2>/dev/null
    $server --port 0 --unixsocket /tmp/redis.sock --tls-port $port --bind 127.0.0.1 \
      --tls-cert-file /tmp/cert --tls-key-file /tmp/key --tls-ca-cert-file /tmp/cert \
      --tls-auth-clients no --save "" --daemonize yes --dir /tmp --pidfile /tmp/redis.pid
    for i in 1 2 3 4 5 6 7 8 9 10; do $client -s /tmp/redis.sock ping && break; sleep 0.3; done
    redlock-cli run -S unix:///tmp/redis.sock -k a -- true
    export REDLOCK_SERVER=rediss://localhost:$port REDLOCK_CACERT=/tmp/cert
    redlock-cli run -k a -c "redlock-cli status a" | grep held
    $client -s /tmp/redis.sock shutdown nosave'

  unpack_source "$suite"
  check "$suite: what the examples use can be installed" in_root "$suite" '
    apt-get -q -y --no-install-recommends install bats bats-assert bats-support procps jq zsh \
      fish bash-completion make sqlite3 postgresql systemd
    dpkg --purge redlock-cli'
  contents "$work/$suite" >"$work/$suite.before"
  check "$suite: the .deb installs beside these" in_root "$suite" 'dpkg -i /tmp/redlock-cli.deb'
  try_examples "$suite"
  check "$suite: removed after the examples" in_root "$suite" 'dpkg --purge redlock-cli'
  check "$suite: the examples leave nothing" nothing_left "$suite"
  rm -rf --one-file-system "${work:?}/$suite"

  try_first_command "$suite" "$suite-source"
  try_installing "$suite" "$suite-source"
  rm -rf --one-file-system "${work:?}/$suite-source"
done

# --- Once more ---

if [[ -n $rebuild ]]; then
  # Not what a cache remembers.
  export CCACHE_DISABLE=1
  check "a second build, in a directory of another name" make_release a-second-directory
  check "it gave the same bytes" diff "$dist/SHA256SUMS" "$work/a-second-directory-dist/SHA256SUMS"
fi

summary
