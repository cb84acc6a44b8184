#pragma once

#include <optional>

#include "child/command.hpp"
#include "child/isolation.hpp"
#include "child/supervisor.hpp"
#include "cli/lock_options.hpp"
#include "cli/server_options.hpp"

namespace redlock::cli {

/// Everything that `run` was told.
struct RunOptions : LockOptions {
  child::StopPlan stop;
  child::Command command;
  child::IsolationMode isolation;
  std::optional<int> status_fd;
  Duration min_hold{};  ///< from the grant on
};

/// --grace, --stop-signal, --on-lost and --descendants.
child::StopPlan read_stop_plan(const Settings& settings, Ttl ttl, const TtlDemands& demands);

/// Whether somebody gave us this descriptor to write to.
bool is_given_for_writing(int fd);

/// Throws CommandError; also when the command cannot be found (127) or executed (126): that is known before the wait.
RunOptions read_run_options(const Settings& settings);

}  // namespace redlock::cli
