#!/usr/bin/env bash
# Fails unless every C++ source is as clang-format leaves it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
find src tests -name '*.[ch]pp' -print0 | xargs -0 clang-format --dry-run -Werror
