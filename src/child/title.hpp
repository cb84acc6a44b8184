#pragma once

#include <sys/types.h>

#include <string_view>

namespace redlock::child {

/// The processes of this program that only keep a lease, release it, or stand by those that do.
inline constexpr std::string_view holder_title = "lock-holder";
inline constexpr std::string_view shield_title = "lock-shield";  ///< the parent of such a holder
inline constexpr std::string_view awaiter_title =
    "lock-awaiter";  ///< such a holder, when a signal has ended its command: it awaits the group
inline constexpr std::string_view releaser_title = "lock-releaser";
inline constexpr std::string_view witness_title = "lock-witness";  ///< of signals to a job

/// Gives this process another name in `comm`; at most 15 bytes of it.
void set_name(std::string_view name) noexcept;

/// Gives this process another name: in `comm` and over the words of its command line, so that
/// `killall redlock-cli` and `pgrep -f` aimed at the program, or at a word of its arguments, miss
/// it. `argv` is main's.
void set_title(std::string_view title, int argc, char** argv) noexcept;

/// Whether this process has one of these titles and runs the same program file as we do, or is just
/// ending: any process can take such a name. False when /proc does not show it.
bool has_guard_title(pid_t pid);

}  // namespace redlock::child
