#!/bin/sh
# Links redlock-cli.o, all of the static program but libc and the compiler's runtime, with those of
# this machine, as the licence of the GNU C Library lets you. Needs g++ and a static libc (Debian:
# g++). BUILT-WITH names the packages that the released program has.
#
#   ./relink.sh [LINKER-OPTION…]       makes ./redlock-cli; CXX: another compiler than g++
set -eu
cd "$(dirname "$0")"
exec "${CXX:-g++}" -static-pie -Wl,--gc-sections -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack \
  -o redlock-cli redlock-cli.o "$@"
