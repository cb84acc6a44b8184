#!/usr/bin/env bash
# Makes the project's site, a directory of static files: the README as its first page, the manual,
# the documents and the pictures, linked with each other.
#
#   packaging/site.sh [DIRECTORY]        DIRECTORY: site, unless named; must not exist
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. packaging/dependencies.sh
ensure_packages mandoc python3-markdown
exec /usr/bin/python3 packaging/site.py "$(realpath -m "${1:-site}")"
