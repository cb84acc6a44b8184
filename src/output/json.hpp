#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "core/decision.hpp"
#include "core/lease.hpp"
#include "core/vote.hpp"
#include "output/event.hpp"
#include "output/outcome.hpp"
#include "output/run_state.hpp"

namespace redlock::output {

/// The JSON of `--json`, `--status-fd` and `--events-fd`: one object on one line, without a
/// newline. The shapes are documented in the manual and in docs/output.schema.json; fields are only
/// ever added. Each duration that is measured from or until now is accompanied by a wall-clock time
/// (timestamp()). Pure except for reading that clock. A key that is not UTF-8 is shown with
/// replacement characters and, byte by byte, as `key_base64`.

/// The fields of every result: {"command","key","result","exit_code"} and, where there is one,
/// "message". A result for several keys has "keys":[{"key"},…] instead of "key".
std::string outcome_json(const Outcome& outcome);

/// acquire: the outcome with "token", "fence", "shared", with --slots "slot" and "slots" or
/// "slot_name" and "slot_names", "lease"
/// (the handle), "ttl_ms", "acquired_at" and "expires_at". With several keys,
/// "leases":[{"key","token","fence"},…] replaces the first two.
std::string lease_json(const Outcome& outcome, const std::vector<Lease>& leases,
                       const std::string& handle);

/// A successful extend: the outcome with "valid_ms", how long the leases are valid from now, and
/// "expires_at"; nullopt leaves out both, for leases that are all inherited.
std::string extend_json(const Outcome& outcome, std::optional<Duration> valid);

/// The result of `run`, for --status-fd and `run --json`. "fence" is that of the lease, with
/// "shared" and, for slots, "slot" and "slots". With several keys "leases":[{"key","fence",…},…]
/// replaces these.
std::string run_json(const RunState& state);

/// The fields that every event's JSON has besides its own.
struct EventContext {
  const std::vector<Resource>& resources;
  const std::vector<Lease>& leases;  ///< those granted so far
  Milliseconds at;                   ///< wall clock
  std::size_t dropped;               ///< number of events before it that were not written
};

/// {"event","at",…}; empty for an event that only appears in messages.
std::string event_json(const event::Any& event, const EventContext& context);

/// A process that is still running after a signal ended the command, so that the lock is kept.
struct AwaitedProcess {
  pid_t pid;
  std::string name;  ///< proc::process_text()
};

/// The state of one key, for `status`.
struct KeyStatus {
  Resource resource;
  Inspection inspection;
  std::vector<std::string> servers;  ///< their names, in the order of `votes`
  std::vector<InspectVote> votes;
  std::vector<AwaitedProcess> awaited{};
  std::optional<std::vector<PastRun>> runs{};  ///< --runs: the latest first
  /// Of the slots that --slots names, those that are free on a quorum.
  std::optional<std::vector<std::string>> free_slot_names{};
};

/// status:
/// {"command","exit_code","locks":[{"key","state","holder","awaits","shares":{"count","first":[…]},
/// "free_slot_names":[…],"waiters":{"count","first":[…]},"last","last_success","skips","runs":[…],
/// "servers":[…]}],"faults":[…]}.
/// There may be many locks, so it keeps only the text of each.
class StatusJson {
 public:
  void add(const KeyStatus& key);

  /// The whole document; call it once. `faults` are those of the servers, `skipped` lists keys that
  /// could not be read.
  [[nodiscard]] std::string text(const std::vector<ServerFault>& faults,
                                 const std::vector<ServerFault>& skipped, int exit_code) &&;

 private:
  std::string locks_;
};

}  // namespace redlock::output
