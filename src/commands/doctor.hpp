#pragma once

#include <optional>
#include <vector>

#include "commands/exit_as.hpp"
#include "commands/session.hpp"
#include "core/types.hpp"

namespace redlock::commands {

/// The options of `doctor`.
struct DoctorOptions {
  std::vector<ServerLink> links;
  std::optional<Resource> key;  ///< the lock to try; nullopt: one of its own
  bool prints;                  ///< else only the exit code answers
};

/// `doctor`: diagnoses the servers, and compares them.
ExitAs doctor(Session& session, DoctorOptions options);

}  // namespace redlock::commands
