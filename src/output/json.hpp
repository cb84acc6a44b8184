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
/// newline. The shapes are documented in the manual and in docs/output.schema.json, and only
/// grow. Every span that ends or begins now also stands there as a time of the wall clock
/// (timestamp()). Pure except for that. Keys that are not UTF-8 are shown with replacement
/// characters and, exactly, as `key_base64`.

/// The fields of every result: {"command","key","result","exit_code"} and, where there is one,
/// "message". When the result is about several keys, "keys":[{"key"},…] replaces "key".
std::string outcome_json(const Outcome& outcome);

/// acquire: the outcome with "token", "fence", "shared", with --slots "slot" and "slots", "lease"
/// (the handle), "ttl_ms", "acquired_at" and "expires_at". With several keys,
/// "leases":[{"key","token","fence"},…] replaces the first two.
std::string lease_json(const Outcome& outcome, const std::vector<Lease>& leases,
                       const std::string& handle);

/// A successful extend: the outcome with "valid_ms", how long the leases are valid from now, and
/// "expires_at", where one was extended.
std::string extend_json(const Outcome& outcome, std::optional<Duration> valid);

/// What `run` did, for --status-fd and `run --json`. "fence" is that of the lease, accompanied by
/// "shared" and perhaps "slot" and "slots". With several keys there is
/// "leases":[{"key","fence",…},…] instead.
std::string run_json(const RunState& state);

/// What an event's JSON has besides the event's own fields.
struct EventContext {
  const std::vector<Resource>& resources;
  const std::vector<Lease>& leases;  ///< those granted
  Milliseconds at;                   ///< wall clock
  std::size_t dropped;               ///< number of events before it that were not written
};

/// {"event","at",…}; empty for an event that is for messages alone.
std::string event_json(const event::Any& event, const EventContext& context);

/// A process that the lock is kept for after a signal has ended its command.
struct AwaitedProcess {
  pid_t pid;
  std::string name;  ///< child::process_text()
};

/// One key's part of `status`.
struct KeyStatus {
  Resource resource;
  Inspection inspection;
  std::vector<std::string> servers;  ///< names, in the order of votes
  std::vector<InspectVote> votes;
  std::vector<AwaitedProcess> awaited{};
  std::optional<std::vector<PastRun>> runs{};  ///< --runs: the latest first
};

/// status:
/// {"command","exit_code","locks":[{"key","state","holder","awaits","shares":{"count","first":[…]},
/// "waiters":{"count","first":[…]},"last","last_success","skips","runs":[…],"servers":[…]}],"faults":[…]}.
/// Of each lock it keeps the text alone, as there may be many.
class StatusJson {
 public:
  void add(const KeyStatus& key);

  /// All of it, once.
  [[nodiscard]] std::string text(const std::vector<ServerFault>& faults,
                                 const std::vector<ServerFault>& skipped, int exit_code) &&;

 private:
  std::string locks_;
};

}  // namespace redlock::output
