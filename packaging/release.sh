#!/usr/bin/env bash
# Makes everything that a release offers for download, from the commit that is checked out:
#   redlock-cli-VERSION.tar.gz                the source
#   redlock-cli-VERSION-linux-ARCH.tar.gz     the program, to be unpacked anywhere
#   redlock-cli_VERSION-1_ARCH.deb, redlock-cli-VERSION-1.ARCH.rpm
#   redlock-cli-VERSION.spdx.json             what it is made of
#   SHA256SUMS
#
#   packaging/release.sh [DIRECTORY]          DIRECTORY: dist, unless named; must not exist
#
# The same commit, compiler and libraries give the same bytes, wherever the tree lies. DEBFULLNAME
# and DEBEMAIL say who packed it.
# BUILD_PRESET=other: not from preset release (tests).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. packaging/dependencies.sh
umask 022

out=$(realpath -m "${1:-dist}")
if [[ -e $out ]]; then
  echo "release: $out is there already" >&2
  exit 64
fi
if [[ -n $(git status --porcelain) ]]; then
  echo "release: the tree differs from its commit; commit or stash first" >&2
  exit 65
fi
version=$(sed -En 's/^project\(.* VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)
tag=$(git tag --points-at HEAD --list 'v*')
if [[ -n $tag && $tag != "v$version" ]]; then
  echo "release: CMakeLists.txt has version $version, the tag is $tag" >&2
  exit 65
fi
if [[ -n $tag ]] && ! grep -qE "^## \[$version\] - [0-9]{4}-[0-9]{2}-[0-9]{2}$" CHANGELOG.md; then
  echo "release: CHANGELOG.md has no dated section for $version" >&2
  exit 65
fi
ensure_packages "${BUILD_PACKAGES[@]}" git dpkg-dev rpm file

preset=${BUILD_PRESET:-release}
build=build/$preset
# A later build of this commit writes the same time.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

cmake --preset "$preset" -DBUILD_TESTING=OFF
cmake --build --preset "$preset"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# All of it, or nothing.
mkdir "$work/dist"
for generator in TGZ DEB RPM; do
  cpack --config "$build/CPackConfig.cmake" -G "$generator" -B "$work/$generator"
done
mv "$work"/TGZ/*.tar.gz "$work"/DEB/*.deb "$work"/RPM/*.rpm "$work/dist"
git archive --format=tar --prefix="redlock-cli-$version/" HEAD |
  gzip -9n >"$work/dist/redlock-cli-$version.tar.gz"
# Of the program as it is packed.
mkdir "$work/unpacked"
tar -C "$work/unpacked" -xzf "$work"/dist/redlock-cli-"$version"-linux-*.tar.gz --strip-components=1
cmake -DPROGRAM="$work/unpacked/bin/redlock-cli" -DVERSION="$version" \
  -DOUTPUT="$work/dist/redlock-cli-$version.spdx.json" \
  -P packaging/sbom.cmake
(cd "$work/dist" && sha256sum -- * >../SHA256SUMS && mv ../SHA256SUMS .)
mkdir -p "$(dirname "$out")"
mv "$work/dist" "$out"
echo "release: made in $out:"
cat "$out/SHA256SUMS"
