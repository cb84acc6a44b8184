#!/usr/bin/env bash
# Makes an apt and an rpm repository of a release's packages: a directory of files to be served by
# any web server, signed.
#
#   packaging/repository.sh RELEASE DIRECTORY KEY
#
#   RELEASE    the directory that packaging/release.sh made
#   DIRECTORY  the repository; it is made, or the release is added to it
#   KEY        the key of gpg to sign with, by its fingerprint or address
#
# It has apt/ (suite stable, component main), rpm/, and redlock-cli.asc, the public key.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. packaging/dependencies.sh
umask 022

usage='usage: repository.sh RELEASE DIRECTORY KEY'
release=$(realpath "${1:?$usage}")
out=$(realpath -m "${2:?$usage}")
key=${3:?$usage}
compgen -G "$release/*.deb" >/dev/null || {
  echo "repository: $release has no packages" >&2
  exit 66
}
gpg --batch --list-secret-keys "$key" >/dev/null 2>&1 || {
  echo "repository: gpg has no secret key $key" >&2
  exit 66
}
ensure_packages apt-utils createrepo-c gpg

# sign OPTION… FILE: beside it, or in it.
sign() { gpg --batch --yes --quiet --local-user "$key" "$@"; }

mkdir -p "$out/apt/pool" "$out/rpm"
cp "$release"/*.deb "$out/apt/pool"
cp "$release"/*.rpm "$out/rpm"
gpg --batch --armor --export "$key" >"$out/redlock-cli.asc"

cd "$out/apt"
suite=dists/stable
for arch in amd64 arm64; do
  mkdir -p "$suite/main/binary-$arch"
  apt-ftparchive --arch "$arch" packages pool >"$suite/main/binary-$arch/Packages"
  gzip -9nk -f "$suite/main/binary-$arch/Packages"
done
# Its own signed files are none that it lists.
rm -f "$suite"/{Release,Release.gpg,InRelease}
apt-ftparchive -o APT::FTPArchive::Release::Origin=redlock-cli \
  -o APT::FTPArchive::Release::Suite=stable -o APT::FTPArchive::Release::Codename=stable \
  -o APT::FTPArchive::Release::Architectures='amd64 arm64' \
  -o APT::FTPArchive::Release::Components=main release "$suite" >"$suite/Release.new"
mv "$suite/Release.new" "$suite/Release"
sign --clearsign --output "$suite/InRelease" "$suite/Release"
sign --armor --detach-sign --output "$suite/Release.gpg" "$suite/Release"

cd "$out"
createrepo_c --quiet --no-database rpm
sign --armor --detach-sign --output rpm/repodata/repomd.xml.asc rpm/repodata/repomd.xml
echo "repository: made in $out: $(find apt/pool rpm -name '*.deb' -o -name '*.rpm' | wc -l) packages"
