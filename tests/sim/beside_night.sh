#!/usr/bin/env bash
# Launches the compiler for redlock_sim_counts, so that the program notes its counts beside the
# objects of redlock_sim_night. The compiler looks for them there, and identifies a static function
# by the name of its object.
# usage: tests/sim/beside_night.sh COMPILER … -o OBJECT …
set -euo pipefail

for ((i = 1; i < $#; ++i)); do
  [[ ${!i} != -o ]] || { j=$((i + 1)) && object=${!j}; }
done
night=${object/redlock_sim_counts/redlock_sim_night}
exec "$@" -dumpdir "${night%/*}/" -dumpbase "$(basename "$object" .o)" -dumpbase-ext ''
