#include <fmt/format.h>
#include <unistd.h>

#include "cli/commands.hpp"
#include "cli/lease_source.hpp"
#include "cli/lock_options.hpp"
#include "cli/outcome.hpp"
#include "cli/session.hpp"
#include "engine/held_lease.hpp"
#include "output/describe.hpp"
#include "support/duration.hpp"

namespace redlock::cli {
namespace {

/// How the round ends the command, with its word and what to say.
struct Meaning {
  ExitCode code;
  std::string message;
};

Meaning meaning_of(const ExtendResult& result, std::size_t servers) {
  switch (result.decision) {
    case ExtendDecision::confirmed:
      return {ExitCode::done, {}};
    case ExtendDecision::lost:
      return {ExitCode::lost, "cannot extend: " + output::not_ours_text(result.not_ours)};
    case ExtendDecision::undecided:
    case ExtendDecision::unconfirmed:
      break;
  }
  return {code_for_faults(result.faults, servers), "cannot extend: no quorum; " + output::faults_text(result.faults)};
}

asio::awaitable<Finish> extend(Session& session, const LeaseHandle& handle, Ttl ttl) {
  HeldLease held(session.electorate(), handle.resource, handle.token, handle.fence);
  const ExtendResult result = co_await held.extend(ttl, Instant::max(), /*by_hand=*/true);
  co_await session.electorate().close(/*drain=*/false);
  const Meaning meaning = meaning_of(result, session.electorate().size());
  const bool extended = meaning.code == ExitCode::done;
  const std::string key = output::key_text(handle.resource);
  if (!extended) session.console().error(fmt::format("{}: {}", key, meaning.message));
  if (extended) session.console().detail(fmt::format("{}: extended by {}", key, format_duration(ttl.length())));
  if (session.json()) {
    output::Outcome outcome = outcome_of("extend", handle.resource, meaning.code, meaning.message);
    if (extended) outcome.result = "extended";
    if (result.not_ours) outcome.holder = result.not_ours->holder;
    outcome.faults = result.faults;
    write_all(STDOUT_FILENO, output::outcome_json(outcome) + "\n");
  }
  co_return Finish{to_int(meaning.code)};
}

}  // namespace

Finish extend_command(const Settings& settings) {
  const ServerOptions servers = read_server_options(settings);
  const Ttl ttl = require_ttl(settings, TtlDemands{servers.timeout, Duration::zero()}, ": how long the lease is to last from now on");
  demand_within_guard(settings, servers, "ttl", ttl.length());
  const LeaseHandle handle = find_lease(settings, servers);
  Session session(settings, servers, servers.timeout.value_or(default_server_timeout(ttl)));
  return session.run(extend(session, handle, ttl));
}

}  // namespace redlock::cli
