#!/bin/sh
# Installs redlock-cli: fetches the static file of a release, checks it, and puts it into a
# directory. What was there before stays until all of it is right.
#
#   install.sh [--dir DIRECTORY] [--version X.Y.Z] [--from ADDRESS] [--key FILE]
#
#   --dir      where to put it: /usr/local/bin for root, ~/.local/bin otherwise
#   --version  which release; the newest, unless named
#   --from     the address with the files of a release, https://… or file:///…
#   --key      a public key (OpenPGP): the release must be signed with it. Without it, the signature
#              is checked if gpg knows the key
#
# Needs curl or wget, tar, gzip and sha256sum.

# All of it is read before any of it runs: a download that was cut off does nothing.
main() {
  set -eu
  umask 022
  releases=https://github.com/OWNER/redlock-cli/releases
  dir='' version='' from='' key=''
  while [ $# -gt 0 ]; do
    case $1 in
      --dir | --version | --from | --key)
        [ -n "${2-}" ] || die 64 "$1 needs a value"
        eval "${1#--}=\$2"
        shift 2
        ;;
      --dir=?* | --version=?* | --from=?* | --key=?*)
        name=${1%%=*}
        eval "${name#--}=\${1#*=}"
        shift
        ;;
      -h | --help)
        echo "usage: install.sh [--dir DIRECTORY] [--version X.Y.Z] [--from ADDRESS] [--key FILE]"
        return
        ;;
      *) die 64 "unknown argument $1; see --help" ;;
    esac
  done
  version=${version#v}
  if [ -z "$from" ] && [ -n "$version" ]; then
    from=$releases/download/v$version
  elif [ -z "$from" ]; then
    from=$releases/latest/download
  fi
  from=${from%/}
  [ -z "$key" ] || [ -r "$key" ] || die 66 "cannot read $key"
  choose_directory
  choose_architecture

  work=$(mktemp -d)
  placed='' made=''
  trap clean_up EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM

  fetch SHA256SUMS || die 69 "cannot fetch $from/SHA256SUMS"
  check_signature
  choose_file
  fetch "$file" || die 69 "cannot fetch $from/$file"
  check_sum
  unpack
  place
  say "installed redlock-cli $found in $dir"
  case :$PATH: in
    *:"$dir":*) ;;
    *) say "$dir is not in PATH" ;;
  esac
}

clean_up() {
  rm -rf "$work" ${placed:+"$placed"}
  [ -z "$made" ] || rmdir "$made" 2>/dev/null || true
}
say() { echo "install: $*"; }
# die STATUS TEXT
die() {
  status=$1
  shift
  echo "install: $*; nothing was installed" >&2
  exit "$status"
}
has() { command -v "$1" >/dev/null 2>&1; }

choose_directory() {
  if [ -z "$dir" ] && [ "$(id -u)" = 0 ]; then
    dir=/usr/local/bin
  elif [ -z "$dir" ]; then
    [ -n "${HOME-}" ] || die 78 "HOME is not set; name a directory with --dir"
    dir=$HOME/.local/bin
  fi
  # As packages know it: /bin may lead to /usr/bin.
  [ ! -d "$dir" ] || dir=$(cd -- "$dir" && pwd -P)
  target=$dir/redlock-cli
  if [ -e "$target" ] || [ -h "$target" ]; then
    grep -q REDLOCK_HELD "$target" 2>/dev/null ||
      die 73 "$target is another program; name another directory with --dir"
    if { has dpkg && dpkg -S "$target"; } >/dev/null 2>&1 ||
      { has rpm && rpm -qf "$target"; } >/dev/null 2>&1; then
      die 73 "$target belongs to a package; upgrade that, or name another directory with --dir"
    fi
  fi
}

choose_architecture() {
  [ "$(uname -s)" = Linux ] || die 69 "redlock-cli runs on Linux only, this is $(uname -s)"
  case $(uname -m) in
    x86_64 | amd64) arch=x86_64 ;;
    aarch64 | arm64) arch=aarch64 ;;
    *) die 69 "there is no file for $(uname -m): build it from source" ;;
  esac
}

# fetch NAME: as $work/NAME.
fetch() {
  case $from in
    file://*) cp "${from#file://}/$1" "$work/$1" 2>/dev/null ;;
    *)
      if has curl; then
        curl -fsSL --retry 3 -o "$work/$1" "$from/$1"
      elif has wget; then
        wget -q -O "$work/$1" "$from/$1"
      else
        die 69 "neither curl nor wget is here"
      fi
      ;;
  esac
}

# Sets $file: the one that the sums name for this architecture.
choose_file() {
  names=$(sed -n "s/^[0-9a-f]\{64\}  \(redlock-cli-[0-9.]*-linux-$arch\.tar\.gz\)\$/\1/p" \
    "$work/SHA256SUMS")
  case $names in
    '') die 65 "$from/SHA256SUMS names no file for $arch" ;;
    *"
"*) die 65 "$from/SHA256SUMS names several files for $arch" ;;
  esac
  file=$names
  found=${file#redlock-cli-}
  found=${found%-linux-*}
  [ -z "$version" ] || [ "$version" = "$found" ] ||
    die 65 "$from has version $found, not $version"
}

check_signature() {
  if ! fetch SHA256SUMS.asc 2>/dev/null; then
    [ -z "$key" ] || die 77 "there is no signature at $from"
    say "the signature was not checked: there is none at $from"
    return 0
  fi
  if ! has gpg; then
    [ -z "$key" ] || die 69 "gpg, which checks the signature, is not here"
    say "the signature was not checked: there is no gpg"
    return 0
  fi
  if [ -n "$key" ]; then
    mkdir -m 700 "$work/gnupg"
    GNUPGHOME=$work/gnupg
    export GNUPGHOME
    gpg --batch --quiet --import "$key" 2>/dev/null || die 66 "$key is no public key"
  fi
  # What gpg writes for programs does not depend on the language.
  told=$(gpg --batch --status-fd 1 --verify "$work/SHA256SUMS.asc" "$work/SHA256SUMS" 2>/dev/null) ||
    true
  case $told in
    *'[GNUPG:] BADSIG '*) die 77 "the signature of SHA256SUMS is wrong" ;;
    *'[GNUPG:] EXPKEYSIG '* | *'[GNUPG:] REVKEYSIG '* | *'[GNUPG:] EXPSIG '*)
      die 77 "the signature of SHA256SUMS, or its key, has expired or is revoked"
      ;;
    *'[GNUPG:] VALIDSIG '*)
      signer=${told#*'[GNUPG:] VALIDSIG '}
      say "the signature is right, by the key ${signer%% *}"
      ;;
    *)
      [ -z "$key" ] || die 77 "SHA256SUMS is not signed with $key"
      say "the signature was not checked: gpg does not know its key"
      ;;
  esac
}

check_sum() {
  has sha256sum || die 69 "sha256sum is not here"
  expected=$(grep "  $file\$" "$work/SHA256SUMS")
  (cd "$work" && echo "$expected" | sha256sum -c >/dev/null 2>&1) ||
    die 65 "$from/$file is not what SHA256SUMS says"
}

unpack() {
  inside=redlock-cli-$found-linux-$arch/bin/redlock-cli
  { gzip -dc "$work/$file" | tar -C "$work" -xf - "$inside"; } 2>/dev/null || true
  [ -s "$work/$inside" ] || die 65 "$file has no program"
}

# Beside the old one first, so that the last step is one rename.
place() {
  [ -d "$dir" ] || made=$dir
  mkdir -p "$dir" 2>/dev/null || die 73 "cannot make $dir"
  placed=$dir/.redlock-cli.$$
  { cp "$work/$inside" "$placed" && chmod 755 "$placed"; } 2>/dev/null ||
    die 73 "cannot write to $dir"
  said=$("$placed" --version 2>/dev/null) || die 71 "the program does not run in $dir"
  case $said in
    "redlock-cli $found
"*) ;;
    *) die 65 "$file has another version of the program" ;;
  esac
  mv -f "$placed" "$target" || die 73 "cannot write $target"
  placed='' made=''
}

main "$@"
