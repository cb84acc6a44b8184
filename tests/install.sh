#!/usr/bin/env bash
# Fails unless `cmake --install` installs exactly what it should, the program that it installs works
# and is hardened, and CMAKE_INSTALL_SYSCONFDIR chooses where the program looks for its
# configuration.
# usage: tests/install.sh BUILD-DIRECTORY
set -euo pipefail
export LC_ALL=C.UTF-8

build=$(realpath "${1:?usage: tests/install.sh BUILD-DIRECTORY}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
for variable in "${!REDLOCK_@}"; do unset "$variable"; done
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT

cmake --install "$build" --prefix "$prefix" >"$prefix/log" || {
  cat "$prefix/log" >&2
  exit 1
}
rm "$prefix/log"

expected=$(
  cat <<'FILES'
bin/redlock-cli
lib/tmpfiles.d/redlock-cli.conf
share/bash-completion/completions/redlock-cli
share/doc/redlock-cli/CHANGELOG.md
share/doc/redlock-cli/LICENSE
share/doc/redlock-cli/README.md
share/doc/redlock-cli/SECURITY.md
share/doc/redlock-cli/THIRD-PARTY-LICENSES
share/doc/redlock-cli/docs/output.schema.json
share/doc/redlock-cli/examples/redlock-cli.toml
share/fish/vendor_completions.d/redlock-cli.fish
share/zsh/site-functions/_redlock-cli
FILES
  for manual in man/*.[1-8]; do echo "share/man/man${manual##*.}/${manual##*/}"; done
  find docs -name decisions -prune -o -name '*.md' -printf 'share/doc/redlock-cli/docs/%P\n' \
    -o -name '*.svg' -printf 'share/doc/redlock-cli/docs/%P\n'
  # Of what is in the static file.
  if grep -q '^REDLOCK_STATIC:BOOL=ON$' "$build/CMakeCache.txt"; then
    for licence in packaging/licences/*; do
      echo "share/doc/redlock-cli/licences/${licence##*/}"
    done
  fi
)
installed=$(cd "$prefix" && find . ! -type d -printf '%P\n')
differences=$(diff <(sort <<<"$expected") <(sort <<<"$installed")) || {
  printf 'install: not what should be installed (<), or more (>):\n%s\n' "$differences" >&2
  exit 1
}

problems=0
problem() {
  echo "install: $*" >&2
  problems=$((problems + 1))
}

for manual in "$prefix"/share/man/man*/*; do
  [[ -s $manual ]] || problem "${manual#"$prefix/"} is empty, or leads nowhere"
done
grep -q '^\.Nm redlock-cli-release$' "$prefix/share/man/man1/redlock-cli-release.1" ||
  problem "the page of release is another"

# Every link of the documents leads somewhere, but for those to how the program is made.
links=0
while IFS=: read -r document link; do
  links=$((links + 1))
  target=$(realpath -sm --relative-to="$prefix/share/doc/redlock-cli" \
    "$(dirname "$document")/${link%%#*}")
  case $target in
    ARCHITECTURE.md | CONTRIBUTING.md | docs/decisions/* | tests/*) ;;
    *)
      [[ -e $prefix/share/doc/redlock-cli/$target ]] ||
        problem "${document#"$prefix/"} has a link to $target, which is not installed"
      ;;
  esac
done < <(grep -roP --include='*.md' '\]\(\K[^)#:]+(?=[)#])' "$prefix/share/doc/redlock-cli")
((links > 30)) || problem "only $links links were found in the documents"

for shell in bash zsh fish; do
  case $shell in
    bash) file=share/bash-completion/completions/redlock-cli ;;
    zsh) file=share/zsh/site-functions/_redlock-cli ;;
    fish) file=share/fish/vendor_completions.d/redlock-cli.fish ;;
  esac
  cmp <("$prefix/bin/redlock-cli" completion "$shell") "$prefix/$file" ||
    problem "$file is not what the program prints"
done

# The example, as it stands and with all that it proposes.
example=$prefix/share/doc/redlock-cli/examples/redlock-cli.toml
sed -E '/^server/d; s/^#([a-z-]+ =)/\1/' "$example" >"$prefix/all.toml"
for file in "$example" "$prefix/all.toml"; do
  "$prefix/bin/redlock-cli" doctor --settings --config "$file" >/dev/null ||
    problem "$file is no configuration"
done

mkdir -m 700 "$prefix/locks"
[[ $("$prefix/bin/redlock-cli" run -S "local:$prefix/locks" -k install -- echo works) == works ]] ||
  problem "it does not work"
tests/hardening.sh "$prefix/bin/redlock-cli" || problem "it is not hardened"

if "$prefix/bin/redlock-cli" --version | grep '^loaded .* OpenSSL'; then
  readelf --string-dump=.note.dlopen "$prefix/bin/redlock-cli" 2>/dev/null |
    grep 'libssl\.so\.3' ||
    problem "it does not note that it loads OpenSSL"
fi

# --- Another directory for the configuration ---

# looks_in DIRECTORY [OPTION…]: fails unless a build with these options looks there, and its manual
# says so. Of the program only what finds the file is compiled, as the build would.
looks_in() {
  local configured=$prefix/configured
  rm -rf "$configured"
  cmake -S . -B "$configured" -G Ninja -DBUILD_TESTING=OFF "${@:2}" >/dev/null || return
  cat >"$configured/main.cpp" <<'PROGRAM'
#include <iostream>

#include "cli/config_paths.hpp"

int main() { std::cout << redlock::cli::config_paths({}).strongest_first.back() << '\n'; }
PROGRAM
  python3 - "$configured" "$PWD/src/support/kernel_calls.cpp" <<'COMPILE' || return
import json, shlex, subprocess, sys
[source] = [
    entry
    for entry in json.load(open(sys.argv[1] + "/compile_commands.json"))
    if entry["file"].endswith("/cli/config_paths.cpp")
]
command = shlex.split(source["command"])
command[command.index("-o") + 1] = "looks"
command.remove("-c")
subprocess.run([*command, sys.argv[2], "main.cpp"], cwd=source["directory"], check=True)
COMPILE
  local found
  found=$("$configured/looks")
  [[ $found == "$1/redlock-cli.toml" ]] || { echo "it looks for $found"; return 1; }
  grep -qF "$1/redlock-cli.toml" "$configured/man/redlock-cli.1"
}
looks_in /etc -DCMAKE_INSTALL_PREFIX=/opt || problem "it does not look in /etc"
looks_in /opt/locks -DCMAKE_INSTALL_SYSCONFDIR=/opt/locks ||
  problem "CMAKE_INSTALL_SYSCONFDIR does not choose where it looks"

((problems == 0)) || exit 1
echo "install: $(wc -l <<<"$installed") files, as they should be"
