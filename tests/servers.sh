#!/usr/bin/env bash
# Unpacks the newest Redis or Valkey that Debian has, from the mirror that this machine's apt uses;
# nothing is installed. Prints the directory that is to stand first in PATH: its redis-server is
# that server.
# usage: tests/servers.sh redis|valkey
# Exits 69 when there is none, neither from the mirror nor from before. What was unpacked stays in
# the user's cache, where it is looked for; the mirror is asked for a newer one once a week.
set -euo pipefail

if [[ $#,${1-} != 1,redis && $#,${1-} != 1,valkey ]]; then
  echo "usage: tests/servers.sh redis|valkey" >&2
  exit 64
fi
readonly what=$1 suite=sid days=7

# Another layout of this directory gets another number. A directory for each version, and a file
# that names the newest.
readonly cache=${XDG_CACHE_HOME:-${HOME:?}/.cache}/redlock-cli-tests/1
readonly newest=$cache/$what.newest
mkdir -p "$cache"
# One at a time; the lock ends with this shell.
exec {lock}>"$cache/.lock"
flock "$lock"

work=
clean_up() { [[ -z $work ]] || rm -rf --one-file-system "$work"; }
trap clean_up EXIT

# Ends here with the last one that was unpacked, if there is one.
use_last() {
  local bin
  [[ -s $newest ]] && bin=$cache/$(<"$newest")/bin && [[ -x $bin/redis-server ]] || return 0
  echo "$bin"
  exit
}
[[ -z $(find "$newest" -mtime "-$days" 2>/dev/null) ]] || use_last

give_up() {
  echo "servers.sh: $1: $(tail -n 1 "$work/log")" >&2
  use_last
  exit 69
}

# On the file system of the cache, so that what is complete gets its name in one step.
work=$(mktemp -d "$cache/.new.XXXXXX")
chmod 755 "$work"
mkdir -p "$work"/apt/{lists,archives}/partial "$work"/apt/parts "$work"/packages \
  "$work"/made/{root,bin}

# Where this machine gets its packages.
# shellcheck disable=SC2016
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -v security |
  head -n 1)
: >"$work/apt/status"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" \
  >"$work/apt/sources.list"
# As on a machine on which nothing is installed.
cat >"$work/apt/conf" <<END
Dir::State::lists "$work/apt/lists";
Dir::State::status "$work/apt/status";
Dir::Cache "$work/apt";
Dir::Etc::sourcelist "$work/apt/sources.list";
Dir::Etc::sourceparts "$work/apt/parts";
Dir::Etc::preferencesparts "$work/apt/parts";
APT::Sandbox::User "root";
APT::Update::Error-Mode "any";
Acquire::Languages "none";
Acquire::http::Timeout "10";
Acquire::Retries "1";
END
export APT_CONFIG=$work/apt/conf
apt-get -q=2 update >"$work/log" 2>&1 || give_up "no list of packages"

# The server, and every library that it may want, with the loader of the same suite.
mapfile -t libraries < <(apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts \
  --no-breaks --no-replaces --no-enhances \
  "$what-server" | grep -E '^lib[a-z0-9+.-]+$' | sort -u)
(cd "$work/packages" && apt-get -q=2 download "$what-server" "$what-tools" "${libraries[@]}") \
  >"$work/log" 2>&1 || give_up "no packages"
for package in "$work"/packages/*.deb; do dpkg -x "$package" "$work/made/root"; done
loader=$(cd "$work/made/root" && find . -name 'ld-linux-*.so.*' | head -n 1)

cat >"$work/made/bin/redis-server" <<'END'
#!/bin/sh
root=$(dirname "$0")/../root
END
cat >>"$work/made/bin/redis-server" <<END
exec "\$root/$loader" --library-path "\$root/usr/lib/$(uname -m)-linux-gnu" \\
  --argv0 redis-server "\$root/usr/bin/$what-server" "\$@"
END
chmod 755 "$work/made/bin/redis-server"
"$work/made/bin/redis-server" --version >"$work/log" 2>&1 || give_up "it does not start"

# shellcheck disable=SC2016
version=$(dpkg-deb --show --showformat '${Version}' "$work"/packages/"$what"-server_*.deb)
name=$what-${version//[^a-zA-Z0-9.+~-]/_}
[[ -e $cache/$name ]] || mv -T "$work/made" "$cache/$name"
echo "$name" >"$work/newest"
mv "$work/newest" "$newest"
use_last
