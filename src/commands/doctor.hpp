#pragma once

#include <optional>
#include <vector>

#include "commands/finish.hpp"
#include "commands/session.hpp"
#include "core/types.hpp"

namespace redlock::commands {

/// The options of `doctor`.
struct DoctorOptions {
  std::vector<ServerLink> links;
  std::optional<Resource> key;  ///< the lock to try; nullopt: one of its own
};

/// `doctor`: diagnoses the servers, and compares them.
Finish doctor(Session& session, DoctorOptions options);

}  // namespace redlock::commands
