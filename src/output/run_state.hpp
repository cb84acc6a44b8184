#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "child/supervisor.hpp"
#include "core/lease.hpp"
#include "output/outcome.hpp"

namespace redlock::output {

/// Why a lease was lost, or could not be renewed in time.
struct Loss {
  std::optional<Resource> resource;  ///< nullopt: it could not be renewed
  std::string reason;                ///< one clause for people
};

/// All that is known of one `run`: what it says of itself, in words, in JSON and to the servers, is
/// read from here.
struct RunState {
  Duration waited{};          ///< from the start to the grant, or to giving up
  std::vector<Lease> leases;  ///< under which the command was to start; empty: it was not
  std::optional<Milliseconds> acquired_at{};  ///< by the wall clock, like the next two
  std::optional<Milliseconds> started_at{};   ///< the command
  std::optional<Milliseconds> ended_at{};     ///< the command
  Duration held{};                            ///< from the grant to the end of the command
  std::string trouble;  ///< why the last round of renewal found no quorum; empty: it found one
  std::optional<Loss> loss{};
  std::optional<StopRequest> stop_request{};
  std::optional<child::CommandEnd> end{};  ///< of the command and of what had to end with it
  std::vector<pid_t> left;                 ///< descendants that still ran at the end
  std::optional<PastRun> fresh{};          ///< the success because of which the command did not run
  bool released = false;                   ///< the servers confirmed the release
  Outcome outcome{};                       ///< how the run ends; also why the command never ran
  int signal = 0;  ///< to die of at the end, in place of the exit code; 0: none

  /// The command's exit code, or the signal that it died of; both nullopt: it did not run, or its
  /// status tells nothing.
  [[nodiscard]] std::optional<int> command_exit() const;
  [[nodiscard]] std::optional<int> command_signal() const;

  /// Whether the command is known to have run without its lock, or to have been stopped for it.
  [[nodiscard]] bool is_lost() const;
};

}  // namespace redlock::output
