#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace redlock::proc {

/// A set of signals: bit n - 1 stands for signal n, as in /proc/PID/status.
using SignalMask = std::uint64_t;

constexpr SignalMask mask_of(int signal) noexcept {
  return SignalMask{1} << (signal - 1);
}

/// The signals that were sent to a process and have not taken effect yet. A killed process keeps
/// its descriptors open until it gets a CPU; only this state shows that it will not run again.
struct SignalState {
  bool is_dying = false;   ///< killed or exiting; it will not execute its program again
  bool is_settled = true;  ///< it sleeps or is stopped; false: it runs, and may be receiving a
                           ///< signal that no longer shows as pending
  SignalMask pending = 0;  ///< sent to it, but not read by it
};

/// The state of a process that reads its signals whenever it does not sleep. If it sleeps, none is
/// pending, since a signal would have woken it. Nullopt when there is no such process, or /proc
/// hides it.
std::optional<SignalState> signal_state(pid_t pid);

/// The parser used by signal_state(). `status` is called only if `stat` does not decide it.
std::optional<SignalState> signal_state_in(const std::string& stat,
                                           const std::function<std::string()>& status);

}  // namespace redlock::proc
