#pragma once

#include "commands/exit_as.hpp"
#include "commands/session.hpp"
#include "core/lease_handle.hpp"

namespace redlock::commands {

/// The options of `extend`.
struct ExtendOptions {
  LeaseHandle lease;
  Ttl ttl;  ///< how long the lease is to last from now on
};

/// `extend`: extends the lease on every key, except where it is inherited.
ExitAs extend(Session& session, const ExtendOptions& options);

}  // namespace redlock::commands
