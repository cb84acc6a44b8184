#!/usr/bin/env bash
# Fails unless every C++ source is as clang-format leaves it, and no script is wider.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
find src tests -name '*.[ch]pp' -print0 | xargs -0 clang-format --dry-run -Werror
if LC_ALL=C.UTF-8 grep -rnE --include='*.lua' '^.{101,}' src; then
  echo "format.sh: longer than 100 columns" >&2
  exit 1
fi
