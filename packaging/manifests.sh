#!/usr/bin/env bash
# Writes, for a release, what other package managers install it by: a Homebrew formula for Linux
# (redlock-cli.rb) and a PKGBUILD for Arch. Both install the static file. The address and the
# version are those of CMakeLists.txt, the sums those of the release.
#
#   packaging/manifests.sh RELEASE DIRECTORY   RELEASE: the directory that packaging/release.sh made
#
# tests/manifests.sh says how far they are tried. flake.nix, for Nix, needs no release.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage='usage: manifests.sh RELEASE DIRECTORY'
release=$(realpath "${1:?$usage}")
out=$(realpath -m "${2:?$usage}")
address=$(sed -En 's/^ *HOMEPAGE_URL ([^ ]+).*/\1/p' CMakeLists.txt)
version=$(sed -En 's/^project\(.* VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)
summary=$(sed -En 's/^set\(CPACK_PACKAGE_DESCRIPTION_SUMMARY "(.*)"\)/\1/p' cmake/Packages.cmake)

# file_for ARCH; sum_for ARCH
file_for() { echo "redlock-cli-$version-linux-$1.tar.gz"; }
sum_for() { sed -n "s/  $(file_for "$1")\$//p" "$release/SHA256SUMS"; }
for arch in x86_64 aarch64; do
  [[ -n $(sum_for "$arch") ]] || {
    echo "manifests: $release/SHA256SUMS has no $(file_for "$arch")" >&2
    exit 66
  }
done

mkdir -p "$out"
cat >"$out/redlock-cli.rb" <<END
class RedlockCli < Formula
  desc "${summary^}"
  homepage "$address"
  version "$version"
  license "MIT"

  on_intel do
    url "$address/releases/download/v$version/$(file_for x86_64)"
    sha256 "$(sum_for x86_64)"
  end
  on_arm do
    url "$address/releases/download/v$version/$(file_for aarch64)"
    sha256 "$(sum_for aarch64)"
  end

  depends_on :linux

  def install
    prefix.install "bin", "share"
  end

  test do
    system bin/"redlock-cli", "run", "-S", "local:#{testpath}", "-k", "test", "--", "true"
  end
end
END

cat >"$out/PKGBUILD" <<END
pkgname=redlock-cli-bin
pkgver=$version
pkgrel=1
pkgdesc="${summary^}"
arch=(x86_64 aarch64)
url="$address"
license=(MIT)
optdepends=('ca-certificates: TLS to servers')
provides=(redlock-cli)
conflicts=(redlock-cli)
options=(!strip)
source_x86_64=("\$url/releases/download/v\$pkgver/$(file_for x86_64)")
source_aarch64=("\$url/releases/download/v\$pkgver/$(file_for aarch64)")
sha256sums_x86_64=($(sum_for x86_64))
sha256sums_aarch64=($(sum_for aarch64))

package() {
  cd "redlock-cli-\$pkgver-linux-\$CARCH"
  install -d "\$pkgdir/usr"
  cp -r bin lib share "\$pkgdir/usr"
  install -D -m 644 share/doc/redlock-cli/LICENSE "\$pkgdir/usr/share/licenses/\$pkgname/LICENSE"
}
END
echo "manifests: made in $out: redlock-cli.rb PKGBUILD"
