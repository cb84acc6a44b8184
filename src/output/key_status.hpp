#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "core/decision.hpp"
#include "core/vote.hpp"

namespace redlock::output {

/// A process that is still running after a signal ended the command, so that the lock is kept.
struct AwaitedProcess {
  pid_t pid;
  std::string name;  ///< proc::process_text()
};

/// The state of one key, for `status`.
struct KeyStatus {
  Resource resource;
  Inspection inspection;
  std::vector<std::string> servers;  ///< their names, in the order of `votes`
  std::vector<InspectVote> votes;
  std::vector<AwaitedProcess> awaited{};
  std::optional<std::vector<PastRun>> runs{};  ///< --runs: the latest first
  /// Of the slots that --slots names, those that are free on a quorum.
  std::optional<std::vector<std::string>> free_slot_names{};
};

}  // namespace redlock::output
