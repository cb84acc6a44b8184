#!/usr/bin/env bash
# Fails when a program lacks what cmake/Hardening.cmake gives it.
# usage: tests/hardening.sh PROGRAM [BUILD-DIRECTORY]
# PROGRAM: built or installed. With the directory that it was built in, also what a program does not
# show: that each of our sources was compiled so. EXPECT_FORTIFIED=0: built without optimisation,
# which _FORTIFY_SOURCE needs.
set -euo pipefail
export LC_ALL=C.UTF-8

program=${1:?usage: tests/hardening.sh PROGRAM [BUILD-DIRECTORY]}
build=${2-}
expect_fortified=${EXPECT_FORTIFIED:-1}

checks=0
problems=0
# expect WHAT PATTERN TEXT: the text has a line that matches.
expect() {
  checks=$((checks + 1))
  grep -qE -- "$2" <<<"$3" && return
  problems=$((problems + 1))
  echo "hardening: $program: $1" >&2
}

headers=$(readelf --wide --file-header --program-headers "$program")
dynamic=$(readelf --wide --dynamic "$program")
# The functions that it takes from libc: these remain when it is stripped, but not in a static file.
imported=$(readelf --wide --dyn-syms "$program" |
  awk '$7 == "UND" { sub(/@.*/, "", $8); print $8 }')
is_static=
if ! grep -q '(NEEDED)' <<<"$dynamic"; then
  is_static=1
  imported=$(readelf --wide --symbols "$program" |
    awk '/^Symbol table/ { all = /\.symtab/ } all { print $8 }')
fi

expect 'not position-independent' '^ *Type: +DYN ' "$headers"
expect 'not marked as a position-independent program' 'FLAGS_1.* PIE' "$dynamic"
expect 'no part is read-only after relocation' '^ *GNU_RELRO ' "$headers"
expect 'symbols are looked up late, so their table stays writable' \
  'FLAGS_1.* NOW|BIND_NOW' "$dynamic"
expect 'the stack is executable' '^ *GNU_STACK .* RW +[0-9]' "$headers"
if [[ -n $is_static && -z $imported ]]; then
  echo "hardening: $program: static and stripped: its stack protector and _FORTIFY_SOURCE do not show"
else
  expect 'no stack protector' '^__stack_chk_fail(_local)?$' "$imported"
fi
((expect_fortified == 0)) || [[ -n $is_static && -z $imported ]] ||
  expect 'no _FORTIFY_SOURCE' '^__(memcpy|read|snprintf|strcpy|memset|longjmp)_chk$' "$imported"
# An assertion keeps its text.
expect 'no libstdc++ assertions' '__n < this->size\(\)' \
  "$(grep -aoE '__n < this->size\(\)' "$program" | head -n 1)"

if [[ -n $build ]]; then
  case $(uname -m) in
    x86_64) branches=-fcf-protection=full ;;
    aarch64) branches=-mbranch-protection=standard ;;
    *) branches= ;;
  esac
  flags="-fPIE -fstack-protector-strong -fstack-clash-protection -D_GLIBCXX_ASSERTIONS $branches"
  ((expect_fortified == 0)) || flags+=' -D_FORTIFY_SOURCE=3'
  commands=$(grep -E '"command": .*/src/[a-z_/]+\.cpp(\\"|"| |$)' "$build/compile_commands.json" |
    grep -vF /tests/ || true)
  expect "$build: no sources" . "$commands"
  for flag in $flags; do
    without=$(grep -vF -- " $flag " <<<"$commands" || true)
    checks=$((checks + 1))
    [[ -z $without ]] && continue
    problems=$((problems + 1))
    echo "hardening: compiled without $flag: \
$(head -n 1 <<<"$without" | grep -oE '[^ ]+\.cpp' | tail -n 1)" >&2
  done
fi

((problems == 0)) || exit 1
echo "hardening: $program: all $checks checks hold"
