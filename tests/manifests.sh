#!/usr/bin/env bash
# Tries what packaging/manifests.sh writes, and flake.nix, as far as Debian's tools can: makepkg
# makes a package, pacman installs and removes it; Ruby reads the formula; Nix evaluates the flake
# with stand-ins for its packages. Not tried: Arch itself, Homebrew, a build by Nix.
# usage: tests/manifests.sh RELEASE   (as root; RELEASE: what packaging/release.sh made)
# On demand. The root comes from the mirror that this machine's apt uses. Of an architecture that
# the release lacks, the sum is made up.
# shellcheck disable=SC2016  # the root's shells expand
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. packaging/dependencies.sh
. tests/clean_root.sh
export LC_ALL=C.UTF-8

release=$(realpath "${1:?usage: tests/manifests.sh RELEASE}")
((EUID == 0)) || { echo "manifests.sh: needs root, to make a root" >&2; exit 77; }
ensure_packages debootstrap

work=$(mktemp -d /tmp/redlock-manifests.XXXXXX)
chmod 755 "$work"
clean_up() { rm -rf --one-file-system "$work"; }
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
version=$(sed -En 's/^project\(.* VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)

# --- What is written ---

mkdir "$work/release"
cp "$release/SHA256SUMS" "$work/release"
for arch in x86_64 aarch64; do
  file=redlock-cli-$version-linux-$arch.tar.gz
  if ! grep -q "  $file\$" "$work/release/SHA256SUMS"; then
    echo "manifests.sh: the release has no $file; its sum is made up"
    printf '%064d  %s\n' 0 "$file" >>"$work/release/SHA256SUMS"
  fi
done
check "a formula and a PKGBUILD are written" \
  packaging/manifests.sh "$work/release" "$work/manifests"
is_refused() {
  local code=0
  grep -v x86_64 "$work/release/SHA256SUMS" >"$work/SHA256SUMS"
  mkdir "$work/lacking" && mv "$work/SHA256SUMS" "$work/lacking"
  packaging/manifests.sh "$work/lacking" "$work/none" || code=$?
  ((code == 66)) && [[ ! -e $work/none ]]
}
check "of a release that lacks an architecture, none is" is_refused

# --- They are tried ---

suite=bookworm
make_root "$suite" || {
  echo "manifests.sh: the mirror gives us no root: $(tail -n 1 "$work/log")" >&2
  exit "$EX_UNAVAILABLE"
}
cp "$work/manifests"/* flake.nix CMakeLists.txt "$work/$suite/tmp"
cp "$release"/redlock-cli-"$version"-linux-*.tar.gz "$work/$suite/tmp"
check "Debian's makepkg, pacman, Ruby and Nix can be installed" in_root "$suite" '
  apt-get -q=2 update
  apt-get -q -y --no-install-recommends install makepkg pacman-package-manager libarchive-tools \
    zstd file ruby nix-bin'

check "Ruby can read the formula" in_root "$suite" 'ruby -c /tmp/redlock-cli.rb'

# The file is beside it, so that it is not fetched, but checked.
check "makepkg checks the file, and makes a package" in_root "$suite" '
  mkdir /tmp/arch
  mv /tmp/PKGBUILD /tmp/redlock-cli-*.tar.gz /tmp/arch
  chown -R nobody /tmp/arch
  cd /tmp/arch
  setpriv --reuid nobody --clear-groups env HOME=/tmp/arch makepkg --nodeps
  ls redlock-cli-bin-'"$version"'-1-*.pkg.tar*'
check "makepkg refuses another file" in_root "$suite" '
  cp -r /tmp/arch /tmp/broken
  cd /tmp/broken
  rm -r src pkg ./*.pkg.tar*
  echo >>redlock-cli-'"$version"'-linux-$(uname -m).tar.gz
  chown -R nobody .
  ! setpriv --reuid nobody --clear-groups env HOME=/tmp/broken makepkg --nodeps >said 2>&1
  grep "did not pass the validity check" said'
check "pacman installs it, and the program works" in_root "$suite" '
  mkdir -p /tmp/target/var/lib/pacman
  # Without the space on the disk, which it cannot tell in a changed root.
  printf "[options]\nArchitecture = auto\nSigLevel = Never\n" >/tmp/pacman.conf
  pacman --config /tmp/pacman.conf --noconfirm --root /tmp/target -U /tmp/arch/*.pkg.tar*
  cd /tmp/target/usr
  test -s share/man/man1/redlock-cli.1.gz
  test -s share/bash-completion/completions/redlock-cli
  test -s share/licenses/redlock-cli-bin/LICENSE
  bin/redlock-cli run -S local:/tmp -k a -- bin/redlock-cli --version'
check "pacman removes it, and leaves nothing of it" in_root "$suite" '
  pacman --config /tmp/pacman.conf --noconfirm --root /tmp/target -R redlock-cli-bin
  test -z "$(find /tmp/target -name "*redlock-cli*" ! -path "*/pacman*")"'

check "Nix evaluates the flake, to this version" in_root "$suite" '
  cd /tmp
  cat >try.nix <<"END"
let
  flake = import ./flake.nix;
  packages = builtins.listToAttrs (map (name: { inherit name; value = name; }) [
    "asio" "cli11" "cmake" "fmt" "hiredis" "libmd" "lua5_1" "ninja" "nlohmann_json" "openssl"
    "patchelf" "pkg-config" "tl-expected" "tomlplusplus" ]) // {
    stdenv.mkDerivation = attributes: attributes;
    lib = { makeLibraryPath = toString; licenses.mit = "MIT"; platforms.linux = "linux"; };
  };
  nixpkgs = {
    lib.genAttrs = names: f:
      builtins.listToAttrs (map (name: { inherit name; value = f name; }) names);
    legacyPackages = { x86_64-linux = packages; aarch64-linux = packages; };
  };
in builtins.removeAttrs
  (flake.outputs { self = "here"; inherit nixpkgs; }).packages.aarch64-linux.default [ "src" ]
END
  nix-instantiate --option store dummy:// --eval --strict try.nix | tee evaluated
  grep "version = \"'"$version"'\"" evaluated'

summary
