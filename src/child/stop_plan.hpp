#pragma once

#include <optional>
#include <string_view>

#include "support/boot_clock.hpp"

namespace redlock::child {

/// What happens to a command whose lease is lost or about to be.
enum class OnLost {
  kill,  ///< stop signal, then KILL
  term,  ///< stop signal only: it may outlive the lease
  warn,  ///< nothing: it may outlive the lease
};

/// What happens to descendants that still run when the command has ended by itself.
enum class Descendants {
  leave,  ///< they run on, without the lock
  wait,   ///< the lock is kept until they have ended, too
  kill,   ///< stop signal, KILL after the grace
};

/// Who gets a signal that is passed on to the command.
enum class SignalTo {
  group,    ///< the process group that it leads; it alone where it leads none
  command,  ///< it alone
};

/// How long a killed process has at least to die, even when it was killed late (we were stopped, or
/// the machine was), before it counts as one that cannot be killed. Also the limit for one pass
/// through the tree.
inline constexpr Milliseconds death_timeout{500};

/// The interval between two walks through a tree that does not die at once.
inline constexpr Milliseconds kill_interval{2};
inline constexpr Milliseconds max_kill_interval{20};

/// Why a command is stopped, before it has ended by itself.
enum class StopReason {
  lease,          ///< the lease is lost, or cannot be renewed
  max_hold,       ///< the lease stands, and was held for as long as it may be
  parent_gone,    ///< the lease stands, and the process that started us has ended
  request,        ///< the lease stands, and its holder was asked to stop
  replaced,       ///< the lease stands, and a newer run is to have it (--replace)
  front_killed,   ///< the front process was killed, and what it guards with us must not go on
  shield_killed,  ///< the same of the shield
};

/// Its name in events, and in REDLOCK_STOP_REASON.
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

/// Whether the lease is kept until what is stopped is dead, so that it ends whatever OnLost says.
constexpr bool keeps_lease(StopReason why) {
  return why == StopReason::max_hold || why == StopReason::parent_gone ||
         why == StopReason::request || why == StopReason::replaced;
}

/// When and how a command is stopped, relative to the deadline of its lease.
struct StopPlan {
  Duration grace;               ///< between the stop signal and KILL
  Duration margin;              ///< between KILL and the deadline, before anything was measured
  Duration max_margin;          ///< the maximum to which measurements may raise it
  Duration measure_interval{};  ///< how often to measure what it takes to stop the command; 0:
                                ///< never
  int stop_signal = 0;
  OnLost on_lost = OnLost::kill;
  Descendants descendants = Descendants::leave;
  SignalTo signal_to = SignalTo::group;  ///< the stop signal goes to the whole tree all the same
  std::optional<Duration> max_hold{};    ///< from the grant to the stop signal; KILL follows after
                                         ///< the grace whatever on_lost says
};

}  // namespace redlock::child
