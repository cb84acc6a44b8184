#pragma once

#include <optional>
#include <string>
#include <vector>

#include "child/command.hpp"
#include "child/isolation.hpp"
#include "child/stop_plan.hpp"
#include "child/watched_process.hpp"
#include "core/lease.hpp"
#include "core/types.hpp"
#include "engine/waiter.hpp"
#include "run/servers.hpp"

namespace redlock::run {

/// What `run` and `acquire` were told about the lock.
struct LockOptions {
  std::vector<Resource> resources;  ///< sorted, each once
  Ttl ttl;
  WaitPolicy wait;
  int conflict_exit_code;  ///< what to exit with when another holds the lock
  Owner owner;
  ServerOptions servers;
  Duration server_timeout;
  Mode mode;
};

/// Everything that `run` was told.
struct RunOptions : LockOptions {
  child::StopPlan stop;
  child::Command command;
  child::IsolationMode isolation;
  std::string isolation_source;  ///< where that was asked for, for messages
  std::optional<int> status_fd;
  Duration min_hold{};  ///< from the grant on
};

/// A process that `acquire` keeps the lease for.
struct WhilePid {
  child::WatchedProcess process;
  child::StopPlan stop;
};

/// Everything that `acquire` was told.
struct AcquireOptions : LockOptions {
  bool prints_export;
  std::optional<std::string> token_file;
  std::optional<WhilePid> while_pid;
};

}  // namespace redlock::run
