#!/usr/bin/env bash
# Makes everything that a release offers for download, from the commit that is checked out:
#   redlock-cli-VERSION.tar.gz                the source
#   redlock-cli-VERSION-linux-ARCH.tar.gz     the program as one static file, to be unpacked anywhere
#   redlock-cli-VERSION-linux-ARCH-relink.tar.gz
#                                             the same as an object, for another libc (LGPL)
#   redlock-cli-VERSION-linux-ARCH.spdx.json  what the static file is made of
#   redlock-cli_VERSION-1_ARCH.deb, redlock-cli-VERSION-1.ARCH.rpm
#   redlock-cli-VERSION.spdx.json             what the program in these is made of
#   install.sh                                what fetches, checks and installs the static file
#   SHA256SUMS
#
#   packaging/release.sh [DIRECTORY [ARCH…]]  DIRECTORY: dist, unless named; must not exist
#                                             ARCH: x86_64, aarch64; this machine's, unless named
#
# The same commit, compiler and libraries give the same bytes, wherever the tree lies. DEBFULLNAME
# and DEBEMAIL say who packed it. docs/packaging.md says what building for another ARCH needs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. packaging/dependencies.sh
umask 022
# The order of names is not the user's.
export LC_ALL=C.UTF-8

out=$(realpath -m "${1:-dist}")
archs=("${@:2}")
((${#archs[@]})) || archs=("$(uname -m)")
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

# A later build of this commit writes the same time.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# All of it, or nothing.
mkdir "$work/dist"

# describe PROGRAM FILE: the bill of materials of the program.
describe() {
  cmake -DPROGRAM="$1" -DEMULATOR="${emulator[*]}" -DVERSION="$version" -DOUTPUT="$work/dist/$2" \
    -P packaging/sbom.cmake
}

# pack_relinkable BUILD-DIRECTORY: the object, and what links it.
pack_relinkable() {
  local name=redlock-cli-$version-linux-$arch-relink
  mkdir "$work/$name"
  cmake --build "$1" --target redlock-relinkable
  cp "$1/src/redlock-cli.o" packaging/relink.sh LICENSE packaging/THIRD-PARTY-LICENSES "$work/$name"
  # Others may be installed, too: another architecture's, and the cross compiler's own libc.
  local debian=amd64
  [[ $arch != aarch64 ]] || debian=arm64
  dpkg-query -W -f '${db:Status-Status} ${Package} ${Architecture} ${Version}\n' \
    'libc6-dev*' 'libssl-dev*' 'libhiredis-dev*' 'liblua5.1-0-dev*' 'libmd-dev*' 'libstdc++-*-dev*' |
    sed -En "s/^installed (\S+ $debian |libstdc\+\+\S+-$debian-cross all )/\1/p" |
    sort >"$work/$name/BUILT-WITH"
  chmod -R go=u-w "$work/$name"
  tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
    -cf - "$name" | gzip -9n >"$work/dist/$name.tar.gz"
}

# build PRESET: in $build.
build() {
  build=build/$1
  [[ $arch == "$(uname -m)" ]] || build+=-$arch
  cmake --preset "$1" -B "$build" -DBUILD_TESTING=OFF "${toolchain[@]}"
  cmake --build "$build"
}

# pack GENERATOR. What looks for the needs of a Debian package must know whose they are.
pack() (
  if [[ $arch == aarch64 ]]; then eval "$(dpkg-architecture -aarm64 -s 2>/dev/null)"; fi
  cpack --config "$build/CPackConfig.cmake" -G "$1" -B "$work/$1-$arch"
  find "$work/$1-$arch" -maxdepth 1 -type f -exec mv {} "$work/dist" \;
)

for arch in "${archs[@]}"; do
  toolchain=()
  emulator=()
  if [[ $arch != "$(uname -m)" ]]; then
    toolchain=(--toolchain "packaging/$arch-linux-gnu.cmake")
    emulator=("qemu-$arch")
  fi
  build static
  pack TGZ
  pack_relinkable "$build"
  # Of the program as it is packed.
  mkdir "$work/unpacked-$arch"
  tar -C "$work/unpacked-$arch" -xzf "$work/dist/redlock-cli-$version-linux-$arch.tar.gz" \
    --strip-components=1
  describe "$work/unpacked-$arch/bin/redlock-cli" "redlock-cli-$version-linux-$arch.spdx.json"
  build release
  pack DEB
  pack RPM
  [[ $arch != "${archs[0]}" ]] ||
    describe "$build/src/redlock-cli" "redlock-cli-$version.spdx.json"
done
git archive --format=tar --prefix="redlock-cli-$version/" HEAD |
  gzip -9n >"$work/dist/redlock-cli-$version.tar.gz"
install -m 755 packaging/install.sh "$work/dist"
(cd "$work/dist" && sha256sum -- * >../SHA256SUMS && mv ../SHA256SUMS .)
mkdir -p "$(dirname "$out")"
mv "$work/dist" "$out"
echo "release: made in $out:"
cat "$out/SHA256SUMS"
