#include "commands/extend.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "commands/nesting.hpp"
#include "engine/held_lease.hpp"
#include "engine/inherited_lease.hpp"
#include "output/failure_text.hpp"
#include "output/outcome.hpp"
#include "output/outcome_json.hpp"
#include "output/text_parts.hpp"
#include "support/duration.hpp"
#include "support/spawn.hpp"

namespace redlock::commands {
namespace {

/// The outcome for one key. Reports a failure.
output::Outcome outcome_of_extend(const Session& session, const Resource& resource,
                                  const ExtendResult& result, std::size_t servers) {
  const bool is_extended = result.decision == ExtendDecision::confirmed;
  output::Outcome outcome = output::outcome_of(
      "extend", {resource},
      is_extended ? output::CommandResult::extended : output::result_of(result, servers),
      is_extended ? "" : "cannot extend: " + output::failure_text(result));
  if (result.not_ours) outcome.holder = result.not_ours->holder;
  outcome.faults = result.faults;
  if (outcome.exit_code != 0)
    session.console().error(fmt::format("{}: {}", output::key_text(resource), outcome.message));
  return outcome;
}

/// Extends a lease. An inherited one is renewed by its own holder, so this only checks that it
/// still exists.
asio::awaitable<ExtendResult> extend_one(ServerSet& server_set, LeaseHandle::Part part, Ttl ttl) {
  const LeaseId id = id_of(part.token);
  if (part.inherited) co_return co_await check_lease(server_set, part.resource, id, Instant::max());
  HeldLease held(server_set, part.resource, part.token, part.fence, part.hold);
  co_return co_await held.extend(ttl, Instant::max(), /*by_hand=*/true);
}

/// A message that is true of every lease: one with more time left keeps it, and an inherited one is
/// not extended.
std::string success_text(const LeaseHandle& handle, Ttl ttl) {
  const auto inherited = std::count_if(handle.parts.begin(), handle.parts.end(),
                                       [](const auto& part) { return part.inherited; });
  const std::string lasts =
      fmt::format("lasts for at least {} from now on", format_duration(ttl.length()));
  if (inherited == 0) return "the lease " + lasts;
  const std::string stands =
      "belongs to the enclosing run or acquire, and still stands; nothing was extended";
  if (static_cast<std::size_t>(inherited) == handle.parts.size()) return "the lease " + stands;
  return fmt::format("our own lease {}; the rest {}", lasts, stands);
}

/// Extends every key, even after a failure; the first failure is the outcome.
asio::awaitable<ExitAs> extend_all(Session& session, const ExtendOptions& options) {
  const LeaseHandle& handle = options.lease;
  const Ttl ttl = options.ttl;
  std::optional<output::Outcome> failure;
  std::vector<Resource> resources;
  std::vector<ServerFault> faults;
  std::optional<Instant> end;  // of the leases that are not inherited
  std::vector<ExtendResult> results(handle.parts.size());
  const auto extend_part = [&](std::size_t i) -> asio::awaitable<void> {
    results[i] = co_await extend_one(session.server_set(), handle.parts[i], ttl);
  };
  co_await run_all(session.io().get_executor(), session.clock(), results.size(), extend_part);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const LeaseHandle::Part& part = handle.parts[i];
    const ExtendResult& result = results[i];
    const bool is_extended = result.decision == ExtendDecision::confirmed && !part.inherited;
    if (is_extended) end = std::min(end.value_or(Instant::max()), result.deadline);
    resources.push_back(part.resource);
    faults.insert(faults.end(), result.faults.begin(), result.faults.end());
    output::Outcome outcome =
        outcome_of_extend(session, part.resource, result, session.server_set().size());
    if (outcome.exit_code != 0 && !failure) failure = std::move(outcome);
  }
  co_await session.server_set().close(CloseMode::immediate);
  output::Outcome all = output::outcome_of(
      "extend", resources, end ? output::CommandResult::extended : output::CommandResult::inherited,
      {});
  all.faults = std::move(faults);
  if (!failure)
    session.console().detail(
        fmt::format("{}: {}", output::keys_text(resources), success_text(handle, ttl)));
  const output::Outcome& outcome = failure ? *failure : all;
  const std::optional<Duration> valid =
      end ? std::optional(*end - session.clock().now()) : std::nullopt;
  if (session.json())
    print_result((failure ? output::outcome_json(outcome) : output::extend_json(outcome, valid)) +
                 "\n");
  co_return ExitAs{outcome.exit_code};
}

}  // namespace

ExitAs extend(Session& session, const ExtendOptions& options) {
  return session.run(extend_all(session, options));
}

}  // namespace redlock::commands
