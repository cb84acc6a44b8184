#!/usr/bin/env bash
# Makes a repository of a release with packaging/repository.sh, signed with a key of its own, serves
# it on loopback, and lets apt install and upgrade from it in a clean Debian 12, and dnf in an empty
# root.
# usage: tests/repository.sh RELEASE   (as root; RELEASE: what packaging/release.sh made)
# On demand. The roots come from the mirror that this machine's apt uses. No root of an rpm
# distribution can be had there: dnf is Debian's, and a package that provides libc and no more stands
# for one.
# shellcheck disable=SC2016  # the root's shells expand
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. packaging/dependencies.sh
. tests/clean_root.sh
export LC_ALL=C.UTF-8

release=$(realpath "${1:?usage: tests/repository.sh RELEASE}")
((EUID == 0)) || { echo "repository.sh: needs root, to make roots" >&2; exit 77; }
ensure_packages debootstrap apt-utils createrepo-c gpg gpg-agent dpkg-dev rpm dnf python3

work=$(mktemp -d /tmp/redlock-repository.XXXXXX)
chmod 755 "$work"
server=
clean_up() {
  [[ -z $server ]] || { kill "$server" && wait "$server"; } 2>/dev/null || true
  gpgconf --kill all 2>/dev/null || true
  rm -rf --one-file-system "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

export GNUPGHOME=$work/gnupg
mkdir -m 700 "$GNUPGHOME"
# make_key ADDRESS
make_key() { gpg --batch --quiet --passphrase '' --quick-gen-key "$1" rsa2048 sign never; }
check "a key for the test" make_key packer@example.org

# The same packages, of an earlier version.
make_earlier() {
  mkdir "$work/earlier"
  dpkg-deb -R "$release"/*amd64.deb "$work/deb"
  sed -i 's/^Version: .*/Version: 0.0.1-1/' "$work/deb/DEBIAN/control"
  dpkg-deb --root-owner-group -b "$work/deb" "$work/earlier/redlock-cli_0.0.1-1_amd64.deb"
  cat >"$work/earlier.spec" <<END
Name: redlock-cli
Version: 0.0.1
Release: 1
Summary: of the past
License: MIT
%description
Of the past.
%install
mkdir -p %{buildroot}/usr/bin
echo old >%{buildroot}/usr/bin/redlock-cli
%files
/usr/bin/redlock-cli
END
  # What a distribution would have, by name alone.
  cat >"$work/libc.spec" <<END
Name: libc-stub
Version: 1
Release: 1
Summary: stands for libc
License: MIT
$(rpm -qp --requires "$release"/*x86_64.rpm | grep -v '^rpmlib' | sed 's/^/Provides: /')
%description
Provides what redlock-cli needs of libc, and has no file.
%files
END
  rpmbuild -bb --define "_topdir $work/rpmbuild" "$work/earlier.spec" "$work/libc.spec"
  mv "$work"/rpmbuild/RPMS/*/redlock-cli-*.rpm "$work"/rpmbuild/RPMS/*/libc-stub-*.rpm \
    "$work/earlier"
}
check "an earlier version, to upgrade from" make_earlier
check "a repository is made of it" packaging/repository.sh "$work/earlier" "$work/repository" \
  packer@example.org

python3 -u -c '
import functools, http.server, sys
handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[1])
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
print(server.server_port)
server.serve_forever()' "$work/repository" >"$work/port" 2>/dev/null &
server=$!
for _ in {1..100}; do
  [[ ! -s $work/port ]] || break
  sleep 0.1
done
address=http://127.0.0.1:$(<"$work/port")

# --- apt ---

spoil() {
  local lists=$work/repository/apt/dists/stable/main/binary-amd64
  echo >>"$lists/Packages" && rm "$lists/Packages.gz"
}
sign_as_another() (
  export GNUPGHOME=$GNUPGHOME-other
  mkdir -m 700 "$GNUPGHOME"
  make_key other@example.org &&
    packaging/repository.sh "$release" "$work/repository" other@example.org
  gpgconf --kill all
)
try_apt() {
  check "apt installs from it, and trusts its key alone" in_root bookworm '
    rm -f /etc/apt/sources.list /etc/apt/sources.list.d/*
    mkdir -p /etc/apt/keyrings
    mv /tmp/redlock-cli.asc /etc/apt/keyrings
    echo "deb [signed-by=/etc/apt/keyrings/redlock-cli.asc] '"$address"'/apt stable main" \
      >/etc/apt/sources.list.d/redlock-cli.list
    apt-get -q update
    apt-get -q -y --no-install-recommends install redlock-cli
    dpkg -s redlock-cli | grep "^Version: 0.0.1-1"'
  add_release
  check "apt upgrades to it" in_root bookworm '
    apt-get -q update
    apt-get -q -y upgrade
    dpkg -s redlock-cli | grep "^Version: 0\.[1-9]"
    redlock-cli run -S local: -k a -- true'
  check "its lists are changed by another" spoil
  check "apt refuses them" in_root bookworm '
    rm -rf /var/lib/apt/lists/*
    ! apt-get -q update -o APT::Update::Error-Mode=any'
  check "another signs it" sign_as_another
  check "apt refuses that, too" in_root bookworm '
    rm -rf /var/lib/apt/lists/*
    ! apt-get -q update -o APT::Update::Error-Mode=any'
}
add_release() {
  check "the release is added to it" packaging/repository.sh "$release" "$work/repository" \
    packer@example.org
}
if make_root bookworm; then
  cp "$work/repository/redlock-cli.asc" "$work/bookworm/tmp"
  try_apt
else
  echo "SKIPPED apt: the mirror gives us no root: $(tail -n 1 "$work/log")"
fi
add_release

# --- dnf ---

# with_dnf ARGUMENT…
with_dnf() {
  dnf -y --installroot="$work/dnf" --releasever=1 --disablerepo='*' \
    --repofrompath="redlock-cli,$address/rpm" --setopt=redlock-cli.repo_gpgcheck=1 \
    --setopt=redlock-cli.gpgcheck=0 --setopt="redlock-cli.gpgkey=$address/redlock-cli.asc" \
    --setopt=install_weak_deps=0 --setopt=reposdir=/nowhere "$@"
}
dnf_installs() {
  with_dnf install libc-stub redlock-cli-0.0.1 && [[ $(<"$work/dnf/usr/bin/redlock-cli") == old ]]
}
dnf_upgrades() {
  with_dnf --refresh upgrade redlock-cli && "$work/dnf/usr/bin/redlock-cli" --version
}
check "dnf installs the earlier version, with a signed list" dnf_installs
check "dnf upgrades to the release" dnf_upgrades
spoil_rpm() { sed -i 's/<revision>/&9/' "$work/repository/rpm/repodata/repomd.xml"; }
check "the list is changed by another" spoil_rpm
dnf_refuses() { ! with_dnf --refresh --setopt=skip_if_unavailable=0 upgrade; }
check "dnf refuses it" dnf_refuses

summary
