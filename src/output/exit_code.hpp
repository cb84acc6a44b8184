#pragma once

#include <array>
#include <string_view>

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

struct ExitCodeMeaning {
  ExitCode code;
  std::string_view meaning;
};

/// The one table; --help shows it, and a test compares redlock-cli(1) with it.
inline constexpr std::array exit_codes{
    ExitCodeMeaning{ExitCode::done, "done"},
    ExitCodeMeaning{ExitCode::usage, "usage: the command line is wrong"},
    ExitCodeMeaning{ExitCode::unavailable, "unavailable: no quorum of servers answered"},
    ExitCodeMeaning{ExitCode::internal, "internal error"},
    ExitCodeMeaning{ExitCode::os_error, "operating system: cannot fork, write, ..."},
    ExitCodeMeaning{ExitCode::busy,
                    "busy: another process held the lock until the wait ended (-E replaces it)"},
    ExitCodeMeaning{ExitCode::denied, "denied: login, rights, or TLS verification"},
    ExitCodeMeaning{ExitCode::config, "configuration or server URL is wrong"},
    ExitCodeMeaning{ExitCode::lost,
                    "lost: not the holder, or not any more; run: the command was stopped"},
    ExitCodeMeaning{
        ExitCode::unconfirmed,
        "unconfirmed: a process of the command was not seen dead before the lock could expire, or "
        "--on-stop failed"},
    ExitCodeMeaning{ExitCode::timed_out, "timed out: --max-hold ended; the command was stopped"},
};

/// How shells report a death by signal n: 128 + n.
inline constexpr int signal_exit_base = 128;

constexpr int to_int(ExitCode code) {
  return static_cast<int>(code);
}

}  // namespace redlock
