#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace redlock::child {

/// Several signals: bit n - 1 stands for signal n, as in /proc/PID/status.
using SignalMask = std::uint64_t;

constexpr SignalMask mask_of(int signal) noexcept {
  return SignalMask{1} << (signal - 1);
}

/// What was sent to a process, and not yet acted upon. A process that was killed is dead to us from
/// that moment on: until it gets a CPU it still has its descriptors, and nothing else shows it.
struct SignalState {
  bool is_dying = false;   ///< killed, or ending; it runs no more of its program
  bool is_settled = true;  ///< it sleeps, or is stopped; while it runs, it may just be taking a
                           ///< signal, which shows nowhere in between
  SignalMask pending = 0;  ///< sent to it; it has read none of these
};

/// Of a process that reads its signals whenever it does not sleep: one that sleeps has none, since
/// they would have woken it. Nothing when there is no such process (any more), or /proc hides it.
std::optional<SignalState> signal_state(pid_t pid);

/// What these texts of /proc say; the status is asked for when the stat leaves something open. The
/// parser behind signal_state().
std::optional<SignalState> signal_state_in(const std::string& stat,
                                           const std::function<std::string()>& status);

}  // namespace redlock::child
