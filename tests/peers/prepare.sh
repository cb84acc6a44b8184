#!/usr/bin/env bash
# Puts other programs' lock libraries into a directory, from the registries that this machine's apt
# and npm use; nothing is installed.
# usage: tests/peers/prepare.sh DIRECTORY [LIBRARY=SOURCES…]   (redlock-rb, redsync)
# Leaves for each library LIB a program DIRECTORY/bin/LIB, to be given NAME TTL-MS SOCKET…, or a
# line in DIRECTORY/missing that says why there is none.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
directory=$(cd "$1" && pwd)
shift
declare -A sources=()
for source; do sources[${source%%=*}]=$(cd "${source#*=}" && pwd); done
export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
root=$directory/root newest=$directory/newest log=$directory/log
mkdir -p "$directory/bin" "$root" "$newest"
: >"$directory/missing"

# missing WHY LIBRARY…
missing() {
  local library
  for library in "${@:2}"; do echo "$library: $1" >>"$directory/missing"; done
}

# program LIBRARY CMD…
program() {
  { echo '#!/bin/sh' && printf 'exec env' && printf ' %q' "${@:2}" && echo ' "$@"'; } \
    >"$directory/bin/$1"
  chmod +x "$directory/bin/$1"
}

# in_root GLOB: a path below the directory of what was unpacked, else that of what is installed.
in_root() { compgen -G "$root$1" | head -n 1 || compgen -G "$1" | head -n 1; }

# --- Debian ---

# apt_at SUITE CMD…: with package lists of our own. The suite is this machine's, or sid.
apt_at() {
  local state=$directory/apt-$1 options=()
  if [[ ! -d $state ]]; then
    mkdir -p "$state"/{lists,archives}/partial "$state/parts"
    if [[ $1 == sid ]]; then
      local mirror
      # shellcheck disable=SC2016
      mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' |
        grep -v security | head -n 1)
      echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror sid main" \
        >"$state/sources.list"
    fi
    apt_at "$1" apt-get -q=2 -o APT::Update::Error-Mode=any update || return
  fi
  [[ $1 != sid ]] || options=(-o "Dir::Etc::sourcelist=$state/sources.list"
    -o "Dir::Etc::sourceparts=$state/parts" -o "Dir::Etc::preferencesparts=$state/parts")
  "$2" -o "Dir::State::lists=$state/lists" -o "Dir::Cache=$state" -o APT::Sandbox::User=root \
    -o Acquire::Languages=none -o Acquire::http::Timeout=10 -o Debug::NoLocking=1 \
    "${options[@]}" "${@:3}"
}

unpack() {
  local package
  for package in "$1"/*.deb; do
    [[ -e $package ]] || break # all of them are installed
    dpkg -x "$package" "$2" || return
  done
}

# debian PACKAGE…: into $root, with those that they need and this machine has not installed.
debian() {
  apt_at here apt-get -q=2 -y --no-install-recommends --download-only install "$@" \
    >"$log" 2>&1 && unpack "$directory/apt-here/archives" "$root"
}

# sid PACKAGE…: into $newest, without what they need: for packages without compiled code.
sid() {
  mkdir -p "$directory/sid"
  (cd "$directory/sid" && apt_at sid apt-get -q=2 download "$@") >"$log" 2>&1 &&
    unpack "$directory/sid" "$newest"
}

# debian_version PACKAGE: of what was unpacked.
debian_version() {
  local package
  package=$(compgen -G "$directory/apt-here/archives/$1_*.deb") || {
    dpkg-query -Wf '${Version}' "$1"
    return
  }
  dpkg-deb -f "$package" Version
}

why() { tail -n 1 "$log"; }

# --- Python ---

program redis-py /usr/bin/python3 "$here/peer.py" redis-py
if sid python3-aioredlock python3-sherlock; then
  for library in aioredlock sherlock; do
    program "$library" PYTHONDONTWRITEBYTECODE=1 \
      PYTHONPATH="$newest/usr/lib/python3/dist-packages" \
      /usr/bin/python3 "$here/peer.py" "$library"
  done
else
  missing "$(why)" aioredlock sherlock
fi

# --- PHP ---

# php_programs LIBRARY…
php_programs() {
  local php options=(-n -d "include_path=$root/usr/share/php:/usr/share/php") extension library
  php=$(in_root '/usr/bin/php[0-9].[0-9]')
  for extension in mbstring igbinary redis; do
    options+=(-d "extension=$(in_root "/usr/lib/php/2*/$extension.so")")
  done
  for library; do
    program "$library" LD_LIBRARY_PATH="$(in_root "/usr/lib/$(uname -m)-linux-gnu")" \
      PEER_LARAVEL="php-illuminate-cache $(debian_version php-illuminate-cache)" \
      PEER_SYMFONY="php-symfony-lock $(debian_version php-symfony-lock)" \
      "$php" "${options[@]}" "$here/peer.php" "$library"
  done
}
if debian php-cli php-redis php-mbstring php-illuminate-cache php-illuminate-redis \
  php-symfony-lock; then
  php_programs phpredis laravel symfony
else
  missing "$(why)" phpredis laravel symfony
fi

# --- Ruby ---

# ruby_program LIBRARY DIRECTORY…: with these in front of where it looks for libraries.
ruby_program() {
  local ruby
  ruby=$(in_root '/usr/bin/ruby[0-9].[0-9]')
  local libraries=$root/usr/lib version=${ruby##*ruby}.0 machine path
  machine=$(uname -m)-linux-gnu
  path=("${@:2}" "$libraries/ruby/vendor_ruby" "$libraries/ruby/$version"
    "$libraries/$machine/ruby/$version")
  program "$1" LD_LIBRARY_PATH="$libraries/$machine" RUBYLIB="$(IFS=: && echo "${path[*]}")" \
    "$ruby" --disable-gems "$here/peer.rb" "$1"
}
readonly gems=/usr/share/rubygems-integration/all/gems
if debian ruby ruby-redis ruby-connection-pool; then
  ruby_program ruby-redis "$(in_root "$gems/redis-[0-9]*/lib")"
else
  missing "$(why)" ruby-redis
fi
if [[ ! -v sources[redlock-rb] ]]; then
  missing "no package of Debian, sources not given" redlock-rb
elif [[ -e $directory/bin/ruby-redis ]] && sid ruby-redis-client; then
  ruby_program redlock-rb "${sources[redlock-rb]}/lib" \
    "$(in_root "$gems/connection_pool-*/lib")" \
    "$(compgen -G "$newest$gems/redis-client-*/lib")"
else
  missing "$(why)" redlock-rb
fi

# --- Node.js ---

readonly packages=(ioredis redlock-4 redlock-5 redis-semaphore)
mkdir "$directory/npm"
cp "$here"/package{,-lock}.json "$directory/npm"
if ! command -v npm >/dev/null; then
  missing "npm is not installed" "${packages[@]}"
elif (cd "$directory/npm" && npm ci --ignore-scripts --no-audit --no-fund) >"$log" 2>&1; then
  for library in "${packages[@]}"; do
    program "$library" NODE_PATH="$directory/npm/node_modules" node "$here/peer.js" "$library"
  done
else
  missing "$(grep -Em 1 '^npm (error|ERR!)' "$log" || why)" "${packages[@]}"
fi

# --- Go ---

# source_version DIRECTORY: of a checkout.
source_version() { git -C "$1" describe --tags 2>/dev/null || echo '?'; }
if [[ ! -v sources[redsync] ]]; then
  missing "no package of Debian, sources not given" redsync
elif debian golang-go golang-github-{gomodule-redigo,hashicorp-go-multierror}-dev; then
  workspace=$directory/go
  mkdir -p "$workspace/src/github.com/go-redsync/redsync" "$workspace/src/peer"
  ln -s "${sources[redsync]}" "$workspace/src/github.com/go-redsync/redsync/v4"
  cp "$here/peer.go" "$workspace/src/peer/main.go"
  go=$(in_root '/usr/lib/go-*/bin/go')
  if env GOROOT="${go%/bin/go}" GO111MODULE=off GOCACHE="$directory/go-cache" \
    GOPATH="$workspace:$root/usr/share/gocode:/usr/share/gocode" \
    "$go" build -o "$directory/peer-go" peer >"$log" 2>&1; then
    program redsync PEER_REDSYNC="redsync $(source_version "${sources[redsync]}"), redigo \
$(debian_version golang-github-gomodule-redigo-dev)" "$directory/peer-go" redsync
  else
    missing "it does not build: $(why)" redsync
  fi
else
  missing "$(why)" redsync
fi
