#!/usr/bin/env bash
# Fails when the same seeds take a different course in another process.
# usage: tests/sim/replay.sh REDLOCK_SIM
set -euo pipefail

cmp <("$1" --seeds 1-200 -v) <("$1" --seeds 1-200 -v)
