#pragma once

#include <sys/types.h>

#include <string_view>

namespace redlock::proc {

/// The titles of those processes of this program that only keep a lease, release it, or assist one
/// that does.
inline constexpr std::string_view holder_title = "lock-holder";
inline constexpr std::string_view shield_title = "lock-shield";  ///< the parent of such a holder
inline constexpr std::string_view awaiter_title =
    "lock-awaiter";  ///< such a holder, after a signal has ended its command: it awaits the rest of
                     ///< the process group
inline constexpr std::string_view releaser_title = "lock-releaser";
inline constexpr std::string_view witness_title = "lock-witness";  ///< it observes signals to a job

/// Sets the name of this process in `comm`, truncated to 15 bytes.
void set_name(std::string_view name) noexcept;

/// Sets the name of this process in `comm` and overwrites its command line, so that `killall
/// redlock-cli`, or a `pkill -f` aimed at the program or one of its arguments, misses it. `argc`
/// and `argv` are main's.
void set_title(std::string_view title, int argc, char** argv) noexcept;

/// Whether the process has one of these titles and runs the same program file as we do, since any
/// process can take such a name. The file is not compared if the process is just ending. False when
/// /proc does not show it.
bool has_guard_title(pid_t pid);

}  // namespace redlock::proc
