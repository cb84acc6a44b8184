#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "core/lease.hpp"
#include "guard/supervisor.hpp"
#include "output/outcome.hpp"

namespace redlock::output {

/// Why a lease was lost, or could not be renewed in time.
struct Loss {
  std::optional<Resource> resource;  ///< nullopt: it could not be renewed
  std::string reason;                ///< one clause for people
};

/// The state of one `run`. Its messages, its JSON and its record on the servers are all derived
/// from this.
struct RunState {
  Duration waited{};          ///< from the start to the grant, or to the end of the wait without it
  std::vector<Lease> leases;  ///< empty: not acquired
  std::optional<Milliseconds> acquired_at{};  ///< wall clock, like the next two
  std::optional<Milliseconds> started_at{};   ///< when the command started
  std::optional<Milliseconds> ended_at{};     ///< when the command ended
  Duration held{};                            ///< from the grant to the end of the command
  std::string trouble;  ///< why the last renewal found no quorum; empty: it found one
  std::optional<Loss> loss{};
  std::optional<StopRequest> stop_request{};
  std::optional<guard::CommandEnd> end{};  ///< of the command and its process tree
  std::vector<pid_t> left;                 ///< descendants that still ran at the end
  std::optional<PastRun> fresh{};          ///< the recent success that made this run unnecessary
  bool released = false;                   ///< a quorum confirmed the release
  Outcome outcome{};                       ///< how the run ends, or why the command never ran
  int signal = 0;  ///< kills this process at the end, in place of an exit code; 0: none

  /// The command's exit code, and the signal that killed it. Both are nullopt if the command did
  /// not run or its status is unknown.
  [[nodiscard]] std::optional<int> command_exit() const;
  [[nodiscard]] std::optional<int> command_signal() const;

  /// Whether the command may have run without its lock, or was stopped because the lock was lost.
  [[nodiscard]] bool is_lost() const;
};

}  // namespace redlock::output
