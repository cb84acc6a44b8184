#pragma once

#include <optional>
#include <string_view>

#include "support/boot_clock.hpp"

namespace redlock {

/// What happens to a command whose lease is lost, or about to be lost.
enum class OnLost {
  kill,  ///< stop signal, then KILL
  term,  ///< stop signal only; it may outlive the lease
  warn,  ///< no signal; it may outlive the lease
};

/// What happens to descendants that still run when the command has ended by itself.
enum class Descendants {
  leave,  ///< they continue without the lock
  wait,   ///< the lock is kept until they have ended, too
  kill,   ///< stop signal, then KILL after the grace
};

/// Who gets a signal that is passed on to the command, and the stop signal at first.
enum class SignalTo {
  group,    ///< the process group that was made for it, or that it leads, the stop signal the whole
            ///< process tree; a signal that is passed on only the command if there is no such group
  command,  ///< only the command
};

/// Why a command is stopped before it has ended by itself. For all but the first reason the lease
/// is still valid.
enum class StopReason {
  lease,          ///< the lease is lost, or cannot be renewed
  max_hold,       ///< it was held for as long as it may be
  parent_gone,    ///< the process that started us has ended
  request,        ///< the holder was asked to stop
  replaced,       ///< a newer run takes the lock over (--replace)
  front_killed,   ///< the front process was killed; the command must not run with one guard missing
  shield_killed,  ///< the same for the shield
};

/// The name of a reason in events and in REDLOCK_STOP_REASON.
constexpr std::string_view word_of(StopReason reason) {
  switch (reason) {
    case StopReason::lease:
      return "lost";
    case StopReason::max_hold:
      return "max_hold";
    case StopReason::parent_gone:
      return "parent_gone";
    case StopReason::request:
      return "request";
    case StopReason::replaced:
      return "replaced";
    case StopReason::front_killed:
    case StopReason::shield_killed:
      break;
  }
  return "front_killed";
}

/// Whether the lease is kept until the command is dead. If so, the command is killed whatever
/// OnLost says.
constexpr bool keeps_lease(StopReason why) {
  return why == StopReason::max_hold || why == StopReason::parent_gone ||
         why == StopReason::request || why == StopReason::replaced;
}

/// When and how a command is stopped, relative to the deadline of its lease.
struct StopPlan {
  Duration grace;               ///< between the stop signal and KILL
  Duration margin;              ///< between KILL and the deadline, before the first measurement
  Duration max_margin;          ///< the most that measurements may raise the margin to
  Duration measure_interval{};  ///< how often to measure the cost of stopping the command; 0: never
  int stop_signal = 0;          ///< also replaces a TERM that is passed on
  OnLost on_lost = OnLost::kill;
  Descendants descendants = Descendants::leave;
  SignalTo signal_to = SignalTo::group;
  std::optional<Duration> max_hold{};  ///< from the grant to the stop signal; KILL follows after
                                       ///< the grace, whatever on_lost says
};

}  // namespace redlock
