#!/usr/bin/env bash
# Makes the root directory of a container for redlock-cli alone: the static file, CA certificates,
# an unprivileged user, and the licences.
#
#   packaging/container/rootfs.sh PROGRAM DIRECTORY      DIRECTORY must not exist
#
# The certificates come from this machine, which must have ca-certificates.
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
if readelf --wide --program-headers --dynamic "$program" | grep -E 'INTERP|\(NEEDED\)'; then
  echo "rootfs: $program is not static: build preset static" >&2
  exit 65
fi
if [[ ! -s $CERTIFICATES ]]; then
  echo "rootfs: $CERTIFICATES is missing: install ca-certificates" >&2
  exit 69
fi

mkdir -p "$out"/{dev,etc/ssl/certs,proc,sys,usr/bin,usr/share/doc/redlock-cli,run}
mkdir -m 1777 "$out/tmp" "$out/run/lock" # local: has its directories there
# For COPY --from, and for PATH.
install -m 755 "$program" "$out/redlock-cli"
ln -s /redlock-cli "$out/usr/bin/redlock-cli"
install -m 644 "$CERTIFICATES" "$out$CERTIFICATES"

printf '%s\n' 'root:x:0:0:root:/:/sbin/nologin' 'nonroot:x:65532:65532:nonroot:/tmp:/sbin/nologin' \
  >"$out/etc/passwd"
printf '%s\n' 'root:x:0:' 'nonroot:x:65532:' >"$out/etc/group"

cp -r "$source/LICENSE" "$source/packaging/THIRD-PARTY-LICENSES" "$source/packaging/licences" \
  "$out/usr/share/doc/redlock-cli"
for package in libc6 libssl3 libssl3t64 ca-certificates; do
  [[ ! -e /usr/share/doc/$package/copyright ]] ||
    install -D -m 644 "/usr/share/doc/$package/copyright" "$out/usr/share/doc/$package/copyright"
done
