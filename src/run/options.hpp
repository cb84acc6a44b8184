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
#include "support/unique_fd.hpp"

namespace redlock::run {

/// The options of `run` and `acquire` that concern the lock.
struct LockOptions {
  std::vector<Resource> resources;  ///< sorted, each once
  Ttl ttl;
  WaitPolicy wait;
  int conflict_exit_code;  ///< the exit code when another process holds the lock
  Owner owner;
  ServerOptions servers;
  Duration server_timeout;
  Mode mode;
  bool supersedes;  ///< newest wins: older waiters that supersede, too, give up
  bool replaces;    ///< and an older holder that does so, too, is stopped; with `supersedes`
  std::optional<std::size_t> max_waiting;  ///< give up at once if so many wait already
  bool insists_on_wait;                    ///< how long to wait was given, and is not the default
};

/// All options of `run`.
struct RunOptions : LockOptions {
  child::StopPlan stop;
  child::Command command;
  child::IsolationMode isolation;
  std::string isolation_source;  ///< where the isolation was requested, for messages
  std::optional<int> status_fd;
  std::optional<int> events_fd;
  bool notifies_service;               ///< --sd-notify, and there is a service manager
  Duration min_hold{};                 ///< from the grant on
  bool insists_on_min_hold = false;    ///< it was asked of this one run, and is no general setting
  std::optional<Duration> once_per{};  ///< at most one successful run in it
  int fresh_exit_code = 0;             ///< the exit code when the command need not run
  bool sets_descendants = false;       ///< --descendants was given: what is left is expected
  bool records_skips = false;          ///< the servers count that the command was not run
  std::optional<child::Command> on_stop{};  ///< what to run when the command is stopped
  UniqueFd parent{};                        ///< --with-parent: of watch_parent_process(); else none
};

/// A lease that `acquire` leaves to a holder process in the background.
struct Background {
  std::optional<child::WatchedProcess> process;  ///< --while-pid: kept while it lives. None:
                                                 ///< --detach
  child::StopPlan stop;  ///< how the process is stopped; has a max_hold where there is none
};

/// All options of `acquire`.
struct AcquireOptions : LockOptions {
  bool prints_export;
  std::optional<std::string> token_file;
  std::optional<int> events_fd;
  std::optional<Background> background;
};

}  // namespace redlock::run
