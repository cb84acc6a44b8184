#pragma once

namespace redlock {

/// The exit codes of redlock-cli itself. Otherwise `run` exits as its command did.
enum class ExitCode {
  done = 0,
  usage = 64,
  unavailable = 69,
  internal = 70,
  os_error = 71,
  busy = 75,
  denied = 77,
  config = 78,
  lost = 79,
  unconfirmed = 80,
  timed_out = 124,
  not_executable = 126,
  not_found = 127,
};

/// How shells report a death by signal n: 128 + n.
inline constexpr int signal_exit_base = 128;

constexpr int to_int(ExitCode code) {
  return static_cast<int>(code);
}

}  // namespace redlock
