#pragma once

#include <optional>

#include "commands/exit_as.hpp"
#include "commands/session.hpp"
#include "core/vote.hpp"

namespace redlock::commands {

/// Whom `stop` concerns.
enum class StopTarget { holder, waiters, all };

/// The options of `stop`.
struct StopOptions {
  Resource resource;
  StopTarget target = StopTarget::holder;
  std::optional<std::string> slot{};  ///< by number or name
  std::optional<Fence> only_if{};
  std::optional<Duration> wait{};  ///< nullopt: the ttl of the holder
  StopRequest request{};
};

/// `stop`: asks the holder to stop its command, and waits until the lease is gone. With
/// StopTarget::all it first sends away those who wait, so that none of them starts.
ExitAs stop(Session& session, const StopOptions& options);

}  // namespace redlock::commands
