#pragma once

#include <optional>

#include "commands/exit_as.hpp"
#include "commands/session.hpp"
#include "core/vote.hpp"

namespace redlock::commands {

/// The options of `stop`.
struct StopOptions {
  Resource resource;
  std::optional<std::size_t> slot{};
  std::optional<Fence> only_if{};
  std::optional<Duration> wait{};  ///< nullopt: the ttl of the holder
  StopRequest request{};
};

/// `stop`: asks the holder to stop its command, and waits until the lease is gone.
ExitAs stop(Session& session, const StopOptions& options);

}  // namespace redlock::commands
