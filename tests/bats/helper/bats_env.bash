# shellcheck shell=bash
# ctest names this file in BASH_ENV, so each bash of bats itself begins with it: bats makes two
# directories for each test, and starting the program mkdir takes longer than reading this file. The
# tests have the same by common.bash.
enable -f mkdir mkdir 2>/dev/null || true
