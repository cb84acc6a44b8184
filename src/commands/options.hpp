#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "commands/servers.hpp"
#include "core/lease.hpp"
#include "core/stop_plan.hpp"
#include "core/types.hpp"
#include "engine/waiter.hpp"
#include "guard/command.hpp"
#include "guard/isolation.hpp"
#include "proc/watched_process.hpp"
#include "support/unique_fd.hpp"

namespace redlock::commands {

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
  bool supersedes;  ///< newest wins: older waiters with this option give up
  bool replaces;    ///< an older holder with this option is stopped, too; only with `supersedes`
  std::optional<std::size_t> max_waiting;  ///< give up at once if this many wait already
  std::optional<Instant> until{};          ///< of a hold: it ends then, however long the wait takes
  bool insists_on_wait;  ///< a wait was asked for; false: it is the default, or there is none
};

/// All options of `run`.
struct RunOptions : LockOptions {
  StopPlan stop{};
  guard::Command command{};
  guard::IsolationMode isolation = guard::IsolationMode::none;
  std::string isolation_source{};  ///< where the isolation was requested, for messages
  std::optional<int> status_fd{};
  std::optional<int> events_fd{};
  bool notifies_service = false;       ///< --sd-notify, and there is a service manager
  Duration min_hold{};                 ///< counted from the grant
  bool insists_on_min_hold = false;    ///< it was set for this run, not in a general setting
  std::optional<Duration> once_per{};  ///< at most one successful run per period
  int fresh_exit_code = 0;  ///< the exit code when the command was skipped because of once_per
  std::vector<int> success_codes{};  ///< exit statuses of the command that are a success, besides 0
  bool sets_descendants = false;  ///< --descendants was given: processes left running are expected
  bool records_skips = false;     ///< the servers count runs whose command was skipped
  std::optional<guard::Command> on_stop{};  ///< what to run when the command is stopped
  UniqueFd parent{};  ///< --with-parent: from watch_parent_process(); else empty
};

/// How a holder process in the background keeps the leases of `acquire`.
struct Background {
  std::optional<proc::WatchedProcess> process;  ///< keep them while it lives; nullopt: --detach
  StopPlan stop;  ///< how to stop the process; without a process, max_hold is set
};

/// All options of `acquire`, or of `hold`, whose owner says so.
struct AcquireOptions : LockOptions {
  [[nodiscard]] bool is_hold() const { return owner.hold_for.has_value(); }
  [[nodiscard]] std::string_view command() const { return is_hold() ? "hold" : "acquire"; }

  bool prints_export = false;
  std::optional<std::string> token_file{};
  std::optional<int> events_fd{};
  std::optional<Background> background{};
};

}  // namespace redlock::commands
