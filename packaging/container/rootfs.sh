#!/usr/bin/env bash
# Makes the root directory of a container for redlock-cli alone: the program, libc, OpenSSL, CA
# certificates, an unprivileged user, and the licences.
#
#   packaging/container/rootfs.sh PROGRAM DIRECTORY      DIRECTORY must not exist
#
# Libraries and certificates come from this machine, which must have libssl3 and ca-certificates.
set -euo pipefail
umask 022
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source=$here/../..
program=${1:?usage: rootfs.sh PROGRAM DIRECTORY}
out=${2:?usage: rootfs.sh PROGRAM DIRECTORY}
readonly CERTIFICATES=/etc/ssl/certs/ca-certificates.crt

if [[ -e $out ]]; then
  echo "rootfs: $out already exists" >&2
  exit 64
fi

# The libraries that a program or library loads, and the loader itself.
libraries_of() { ldd "$1" | grep -oE '/[^ ]+'; }

ssl=$(ldconfig -p | sed -n 's/.*libssl\.so\.3 .* => //p' | head -n 1)
if [[ -z $ssl || ! -s $CERTIFICATES ]]; then
  echo "rootfs: libssl.so.3 or $CERTIFICATES is missing: install libssl3 and ca-certificates" >&2
  exit 69
fi

mkdir -p "$out"/{dev,etc/ssl/certs,proc,sys,usr/bin,usr/lib/ssl,usr/share/doc/redlock-cli,run}
mkdir -m 1777 "$out/tmp" "$out/run/lock" # local: has its directories there
install -m 755 "$program" "$out/usr/bin/redlock-cli"
while read -r library; do
  install -D -m 755 "$library" "$out$library"
done < <({ libraries_of "$program"; echo "$ssl"; libraries_of "$ssl"; } | sort -u)

# Where Debian's OpenSSL looks for the certificates that a system trusts.
install -m 644 "$CERTIFICATES" "$out$CERTIFICATES"
ln -s "$CERTIFICATES" "$out/usr/lib/ssl/cert.pem"

printf '%s\n' 'root:x:0:0:root:/:/sbin/nologin' 'nonroot:x:65532:65532:nonroot:/tmp:/sbin/nologin' \
  >"$out/etc/passwd"
printf '%s\n' 'root:x:0:' 'nonroot:x:65532:' >"$out/etc/group"

cp "$source/LICENSE" "$source/packaging/THIRD-PARTY-LICENSES" "$out/usr/share/doc/redlock-cli"
for package in libc6 libssl3 libssl3t64 ca-certificates; do
  [[ ! -e /usr/share/doc/$package/copyright ]] ||
    install -D -m 644 "/usr/share/doc/$package/copyright" "$out/usr/share/doc/$package/copyright"
done
