#include <fmt/format.h>
#include <unistd.h>

#include "cli/command_error.hpp"
#include "cli/commands.hpp"
#include "cli/lease_source.hpp"
#include "cli/lock_options.hpp"
#include "cli/outcome.hpp"
#include "cli/session.hpp"
#include "engine/ballot.hpp"
#include "engine/held_lease.hpp"
#include "engine/survey.hpp"
#include "output/describe.hpp"

namespace redlock::cli {
namespace {

/// Says how it ended, on stderr or as JSON.
Finish report(const Session& session, output::Outcome outcome, bool worked) {
  const std::string line = fmt::format("{}: {}", output::key_text(*outcome.resource), outcome.message);
  if (!outcome.message.empty()) worked ? session.console().notice(line) : session.console().error(line);
  if (session.json()) write_all(STDOUT_FILENO, output::outcome_json(outcome) + "\n");
  return Finish{outcome.exit_code};
}

output::Outcome outcome_of_release(const Resource& resource, const ReleaseResult& result, std::size_t servers) {
  output::Outcome outcome;
  switch (result.decision) {
    case ReleaseDecision::released:
      outcome = outcome_of("release", resource, ExitCode::done, {});
      outcome.result = "released";
      break;
    case ReleaseDecision::not_ours:
      outcome = outcome_of("release", resource, ExitCode::lost, "cannot release: " + output::not_ours_text(result.not_ours));
      if (result.not_ours) outcome.holder = result.not_ours->holder;
      break;
    case ReleaseDecision::supervised:
      outcome = outcome_of("release", resource, ExitCode::usage,
                           "this lease is held by `redlock-cli run`, which releases it when its command ends; `redlock-cli release -k KEY "
                           "--force` breaks it");
      outcome.holder = result.supervisor;
      break;
    case ReleaseDecision::unavailable:
      outcome = outcome_of("release", resource, code_for_faults(result.faults, servers),
                           "no quorum confirmed the release; what is left expires by itself; " + output::faults_text(result.faults));
      break;
  }
  outcome.faults = result.faults;
  return outcome;
}

asio::awaitable<Finish> release(Session& session, const LeaseHandle& handle) {
  HeldLease held(session.electorate(), handle.resource, handle.token, handle.fence);
  const ReleaseResult result = co_await held.release(/*by_hand=*/true);
  co_await session.electorate().close(/*drain=*/false);
  co_return report(session, outcome_of_release(handle.resource, result, session.electorate().size()),
                   result.decision == ReleaseDecision::released);
}

/// The votes on breaking a lock, put together.
output::Outcome outcome_of_break(const Resource& resource, const std::vector<BreakVote>& votes, const std::vector<ServerFault>& faults) {
  std::optional<Holder> broken;
  std::optional<Holder> other;
  for (const BreakVote& vote : votes) {
    if (const auto* done = std::get_if<Broken>(&vote); done != nullptr && (!broken || broken->foreign)) broken = done->holder;
    if (const auto* left = std::get_if<OtherFence>(&vote)) other = left->holder;
  }
  const bool answered = votes.size() - faults.size() >= quorum_of(votes.size());
  output::Outcome outcome;
  if (!answered) {
    outcome = outcome_of("release", resource, code_for_faults(faults, votes.size()), "no quorum answered; " + output::faults_text(faults));
  } else if (other) {
    outcome = outcome_of("release", resource, ExitCode::lost, "left alone, it has another fence: held by " + output::holder_text(*other));
  } else {
    outcome = outcome_of("release", resource, ExitCode::done,
                         broken ? "broken; it was held by " + output::holder_text(*broken) : "nothing to break: it is free");
    outcome.result = broken ? "broken" : "free";
  }
  outcome.holder = other ? other : broken;
  outcome.faults = faults;
  return outcome;
}

asio::awaitable<Finish> break_it(Session& session, Resource resource, std::optional<Fence> only_if) {
  const std::vector<BreakVote> votes = co_await break_lock(session.electorate(), resource, only_if);
  co_await session.electorate().close(/*drain=*/false);
  const auto faults = faults_among(session.electorate(), [&](std::size_t i) { return &votes[i]; });
  const output::Outcome outcome = outcome_of_break(resource, votes, faults);
  co_return report(session, outcome, outcome.exit_code == 0);
}

}  // namespace

Finish release_command(const Settings& settings) {
  const ServerOptions servers = read_server_options(settings);
  const auto fence = settings.number("if-fence", Fence::max);
  const bool force = settings.flag("force");
  if (fence && !force) throw CommandError(ExitCode::usage, "--if-fence goes with --force");
  // No ttl of ours to derive it from: the longest default.
  Session session(settings, servers, servers.timeout.value_or(default_server_timeout(*Ttl::from(Ttl::max))));
  if (!force) return session.run(release(session, find_lease(settings, servers)));
  return session.run(break_it(session, read_key(settings), fence ? std::optional(Fence(*fence)) : std::nullopt));
}

}  // namespace redlock::cli
