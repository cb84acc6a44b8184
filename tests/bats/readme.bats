#!/usr/bin/env bats
# The README's blocks work as printed, for a user who has the programs that they name.
load helper/common
load helper/documents

setup() {
  DOCS=$BATS_TEST_DIRNAME/../..
  setup_documents
}

# paste NAME: the block, as typed into a shell.
paste() {
  block README.md "$1" >"$1.sh" || return
  bash -e "$1.sh"
}

@test "each block that a user would paste has a name, and is run by a test in this file" {
  local language name count=0
  while read -r language name; do
    # An output, or the two commands that tests/packages.sh and CI run.
    [[ $language != console && -n $language ]] || continue
    if [[ -z $name ]]; then
      assert_equal "$(grep -A2 -E '^```sh$' "$DOCS/README.md")" \
        $'```sh\n./packaging/quickstart.sh\n./tests/run.sh'
      continue
    fi
    grep -qE "(paste|block README.md) ${name#run=}\b" "$BATS_TEST_FILENAME" ||
      fail "$name is run nowhere"
    count=$((count + 1))
  done < <(grep -oE '^```.*' "$DOCS/README.md" | tr -d '`')
  assert_in_range "$count" 7 30
}

@test "a package is installed by the name that a release gives it" {
  program sudo <<<$'#!/bin/sh\necho "$@"'
  run -0 paste package
  local version
  version=$(redlock-cli --version | sed -n '1s/.* //p')
  assert_output "apt install ./redlock-cli_$version-1_amd64.deb
dnf install ./redlock-cli-$version-1.x86_64.rpm"
}

@test "the static file is installed with one line, by curl or by wget" {
  local version name
  version=$(redlock-cli --version | sed -n '1s/.* //p')
  name=redlock-cli-$version-linux-$(uname -m)
  mkdir -p "$name/bin" release
  cp "$REDLOCK_CLI" "$name/bin/redlock-cli"
  tar -czf "release/$name.tar.gz" "$name"
  (cd release && sha256sum "$name.tar.gz" >SHA256SUMS)
  cp "$DOCS/packaging/install.sh" release/
  program curl <<END
#!/bin/bash
url=\$(printf '%s\n' "\$@" | grep '/releases/latest/download/') to=/dev/stdout
[[ \$* != *" -o "* ]] || to=\${@: -2:1}
cat "$PWD/release/\${url##*/}" >"\$to" 2>/dev/null
END
  program wget <<<$'#!/bin/sh\n[ "$1" = -qO- ] && exec curl "$2"'
  program id <<<$'#!/bin/sh\necho 1000'
  local tool
  for tool in curl wget; do
    run -0 bash -e <(block README.md static | grep "^$tool ")
    assert_line "install: installed redlock-cli $version in $HOME/.local/bin"
    cmp "$REDLOCK_CLI" "$HOME/.local/bin/redlock-cli"
    rm "$HOME/.local/bin/redlock-cli"
  done
}

@test "an image has the file where it is copied from" {
  local from
  from=$(block README.md image | sed -n 's|^COPY --from=[^ ]* \(/[^ ]*\) /usr/bin/$|\1|p')
  assert_equal "$from" /redlock-cli
  grep -qF "\"\$out$from\"" "$DOCS/packaging/container/rootfs.sh"
}

@test "the first lock needs no server" {
  mkdir -m 700 locks
  unset REDLOCK_SERVER
  run -0 bash -e <(block README.md first | sed "s|local:|local:$PWD/locks|")
  assert_line --index 0 'I have the lock'
  assert_output --partial 'demo'
}

@test "installing by hand names the packages that the build needs" {
  local packages
  packages=$(block README.md install | sed -e ':join' -e '/\\$/{N;s/\\\n//;bjoin}' |
    sed -n 's/^sudo apt-get install //p')
  # shellcheck source=packaging/dependencies.sh
  . "$DOCS/packaging/dependencies.sh"
  assert_equal "$(xargs -n 1 <<<"$packages" | sort)" \
    "$(printf '%s\n' "${BUILD_PACKAGES[@]}" | sort)"
}

@test "the server is named once for all" {
  block README.md server >server.sh
  unset REDLOCK_SERVER
  run -0 bash -c '. ./server.sh; redlock-cli doctor --settings'
  assert_output --partial redis://10.0.0.1
}

@test "the second deploy waits for the first" {
  executable deploy.sh >/dev/null <<'END_OF_DEPLOY'
#!/bin/sh
echo "$@" >>runs
until [ -e enough ]; do sleep 0.1; done
END_OF_DEPLOY
  start_background one bash -ec "$(block README.md deploy)"
  wait_until test -s runs
  start_background two bash -ec "$(block README.md deploy)"
  wait_until grep -q 'waiting for deploy: held by .*"release 4.2"' "$(background_stderr two)"
  assert_equal "$(<runs)" --prod
  : >enough
  wait_background one
  assert_equal "$status" 0
  wait_background two
  assert_equal "$status" 0
  assert_equal "$(<runs)" $'--prod\n--prod'
}

@test "of the hosts with the same crontab line one does the nightly job" {
  local command
  command=$(block README.md nightly | sed -E 's/^[^ ]+( [^ ]+){4} //; s|/usr/local/bin/||')
  slow_job backup
  start_background one sh -c "$command"
  wait_until count_runs 1
  run -0 --separate-stderr sh -c "$command"
  assert_equal "$output$stderr" ""
  : >enough
  wait_background one
  assert_equal "$status" 0
  run -0 sh -c "$command"
  assert count_runs 1
  run -0 redlock-cli status nightly --max-age 26h --server-timeout 20s
}

@test "a CI job runs under its lock, and not without its secret" {
  local command
  command=$(block README.md ci | sed -n 's/^run: //p')
  assert_equal "$(block README.md ci | sed -n 's/^env://p; s/^  REDLOCK_SERVER: .*/set/p')" $'\nset'
  program make <<<$'#!/bin/sh\necho "$REDLOCK_KEY: $*"'
  run -0 bash -ec "$command"
  assert_output "staging: deploy"
  REDLOCK_SERVER='' run -78 bash -ec "$command"
  refute_output --partial "staging: deploy"
}

@test "a command knows its slot or device, and searches share their lock" {
  executable train <<<$'#!/bin/sh\necho "train $*"' >/dev/null
  executable test <<<$'#!/bin/sh\necho "test $*"' >/dev/null
  executable search.sh >/dev/null \
    <<<$'#!/bin/sh\nredlock-cli run -k index --shared -n -- echo "searched twice"'
  run -0 paste slots
  assert_output $'train --device 0\ntest --on phone1\nsearched twice'
}

@test "a script holds its lock until it ends" {
  block README.md script >job
  echo 'redlock-cli status deploy --exit-code -q; echo "status $?"' >>job
  run -0 bash job
  assert_line "status 75"
  wait_for_no_key 0 deploy
  # A busy lock ends the script.
  redlock-cli acquire -k deploy --ttl 1m >/dev/null
  run -75 bash -c "$(block README.md script | sed 's/acquire /acquire -n /'); echo went on"
  refute_output --partial "went on"
}

@test "stop ends the running command, with the reason" {
  start_background ours redlock-cli run -k deploy --ttl 9s --server-timeout 1s -- \
    sh -c 'echo entered; exec sleep 1000'
  wait_for_stdout ours entered
  run -0 paste stop
  wait_background ours
  assert_equal "$status" 143
  assert_regex "$stderr" '"wrong branch"'
}

@test "hold keeps everybody out until it is lifted" {
  run -0 paste hold
  assert_output --regexp 'deploy: on hold until .*09:00; '
  assert_output --partial "deploy: lifted"
}

@test "status shows every lock, or one" {
  redlock-cli acquire -k deploy --ttl 1m --note "release 4.2" >/dev/null
  run -0 paste who
  assert_line --regexp '^deploy +held '
  assert_line --regexp '^deploy: held by .*"release 4.2"'
}
