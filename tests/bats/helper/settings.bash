# shellcheck shell=bash
# A busy lock, and the user's configuration file.

# The exit code of a busy lock shows which source won, so the lock is held throughout.
setup_settings() {
  setup_one_server
  # On a busy machine a single attempt needs as much time as the default ttl allows.
  export REDLOCK_SERVER_TIMEOUT=4s
  redis 0 set busy x px 600000
  USER_FILE=$XDG_CONFIG_HOME/redlock-cli/config.toml
}

# user_file LINE…: the user's configuration file.
user_file() {
  mkdir -p "$(dirname "$USER_FILE")"
  printf '%s\n' "$@" >"$USER_FILE"
}

# ends_with CODE OPTION…: an attempt on the busy lock exits with CODE.
ends_with() {
  local code=$1
  shift
  run --separate-stderr redlock-cli run -k busy -n "$@" -- true
  assert_equal "$status" "$code"
}
