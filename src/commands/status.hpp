#pragma once

#include <optional>
#include <string>
#include <vector>

#include "commands/exit_as.hpp"
#include "commands/session.hpp"
#include "core/types.hpp"
#include "engine/inspect.hpp"
#include "output/check.hpp"

namespace redlock::commands {

/// The options of `status`.
struct StatusOptions {
  std::vector<Resource> resources;      ///< empty: all locks
  std::string prefix;                   ///< lists only locks whose keys begin with it
  Listed listed;                        ///< which locks to list
  std::optional<std::size_t> slots;     ///< how many slots each lock has
  std::vector<std::string> slot_names;  ///< and their names, if they have any
  bool exit_code;
  std::optional<Duration> watch;  ///< the refresh interval
  bool verbose;
  output::CheckLimits limits;       ///< for a monitoring check
  std::optional<std::size_t> runs;  ///< how many of the last runs to show
  bool openmetrics;
  bool prints;  ///< else only the exit code answers, unless metrics are to be printed

  [[nodiscard]] bool checks() const { return limits.max_age || limits.max_held; }
};

/// `status`: shows locks once, or repeatedly. Throws CommandError when it cannot write.
ExitAs status(Session& session, const StatusOptions& options,
              const guard::InheritedSignals& inherited);

}  // namespace redlock::commands
