#include "commands/release.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "commands/key_report.hpp"
#include "engine/held_lease.hpp"
#include "engine/inspect.hpp"
#include "engine/round.hpp"
#include "output/failure_text.hpp"
#include "output/holder_text.hpp"
#include "output/outcome.hpp"
#include "output/request_text.hpp"
#include "output/text_parts.hpp"
#include "support/spawn.hpp"
#include "support/text.hpp"

namespace redlock::commands {
namespace {

/// Names the servers that refused to release a lease, and so still hold it; empty if none did. A
/// server that does not answer is not named, because the release may have reached it.
std::string refusals_text(const ReleaseResult& result) {
  std::vector<ServerFault> refusals = result.faults;
  std::erase_if(refusals, [](const ServerFault& fault) { return !fault.fault.refused; });
  if (refusals.empty()) return {};
  return "not confirmed by " + output::faults_text(refusals) + "; it expires there by itself";
}

output::Outcome outcome_of_release(const Resource& resource, const ReleaseResult& result,
                                   std::size_t servers) {
  output::Outcome outcome;
  // A clean-up step of a script that released the lease already has nothing to complain about.
  const bool is_again = result.was_released && result.decision != ReleaseDecision::released &&
                        result.decision != ReleaseDecision::supervised;
  if (is_again) {
    outcome = output::outcome_of("release", {resource}, output::CommandResult::released,
                                 "already released");
    outcome.faults = result.faults;
    return outcome;
  }
  switch (result.decision) {
    case ReleaseDecision::released:
      outcome = output::outcome_of("release", {resource}, output::CommandResult::released,
                                   refusals_text(result));
      break;
    case ReleaseDecision::not_ours:
      outcome = output::outcome_of("release", {resource}, output::CommandResult::lost,
                                   "cannot release: " + output::not_ours_text(result.not_ours));
      if (result.not_ours) outcome.holder = result.not_ours->holder;
      break;
    case ReleaseDecision::supervised:
      outcome = output::outcome_of("release", {resource}, output::CommandResult::usage,
                                   fmt::format("this lease is held by `redlock-cli run`, which "
                                               "releases it when its command ends; `redlock-cli "
                                               "stop {0}` stops that, `redlock-cli release {0} "
                                               "--force` breaks the lock under it",
                                               output::key_option(resource)));
      outcome.holder = result.supervisor;
      break;
    case ReleaseDecision::unavailable:
      outcome = output::outcome_of("release", {resource},
                                   output::result_for_faults(result.faults, servers),
                                   "no quorum confirmed the release; the lock expires by itself; " +
                                       output::faults_text(result.faults));
      break;
  }
  outcome.faults = result.faults;
  return outcome;
}

asio::awaitable<output::Outcome> release_one(ServerSet& server_set, const LeaseHandle::Part& part) {
  if (part.inherited) {
    co_return output::outcome_of("release", {part.resource}, output::CommandResult::inherited, {});
  }
  HeldLease held(server_set, part.resource, part.token, part.fence, part.hold);
  const ReleaseResult result = co_await held.release(/*by_hand=*/true);
  co_return outcome_of_release(part.resource, result, server_set.size());
}

/// Releases the leases in reverse order, as `run` does.
asio::awaitable<ExitAs> release_all(Session& session, const LeaseHandle& handle) {
  const std::vector<LeaseHandle::Part> parts(handle.parts.rbegin(), handle.parts.rend());
  std::vector<output::Outcome> outcomes(parts.size());
  const auto release_part = [&](std::size_t i) -> asio::awaitable<void> {
    outcomes[i] = co_await release_one(session.server_set(), parts[i]);
  };
  co_await run_all(session.io().get_executor(), session.clock(), parts.size(), release_part);
  KeyReport report(session);
  for (output::Outcome& outcome : outcomes) report.add(std::move(outcome));
  co_await session.server_set().close(CloseMode::immediate);
  co_return report.finish();
}

/// A key that is not a lock of redlock-cli, and the servers that have it.
struct ForeignAt {
  const ForeignKey* key;
  std::vector<std::string> servers;
};

/// The distinct foreign keys in the votes: servers may have different data under the same key.
std::vector<ForeignAt> foreign_keys_in(const std::vector<BreakVote>& votes,
                                       const std::vector<std::string>& servers) {
  std::vector<ForeignAt> found;
  for (std::size_t i = 0; i < votes.size(); ++i) {
    const auto* key = std::get_if<ForeignKey>(&votes[i]);
    if (key == nullptr) continue;
    const auto same = std::ranges::find_if(
        found, [&](const ForeignAt& one) { return one.key->holder.id == key->holder.id; });
    if (same == found.end()) {
      found.push_back({key, {servers[i]}});
    } else {
      same->servers.push_back(servers[i]);
    }
  }
  return found;
}

std::string foreign_keys_text(const std::vector<ForeignAt>& found) {
  if (found.size() == 1) return output::foreign_key_text(*found.front().key);
  std::vector<std::string> texts;
  for (const ForeignAt& one : found) {
    texts.push_back(fmt::format(
        "at {}: {}", escape_for_terminal(fmt::format("{}", fmt::join(one.servers, ", "))),
        output::foreign_key_text(*one.key)));
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

std::string left_alone_text(const Resource& resource, const std::vector<ForeignAt>& found) {
  const bool are_like_locks = std::ranges::all_of(
      found, [](const ForeignAt& one) { return output::is_like_lock(one.key->holder); });
  return fmt::format(
      "left alone: not a lock of redlock-cli, or one whose owner record was lost: {}; {}",
      foreign_keys_text(found), output::foreign_advice(resource, are_like_locks));
}

/// Combines the servers' votes on breaking a lock.
output::Outcome outcome_of_break(const BreakRequest& request, const std::vector<BreakVote>& votes,
                                 const std::vector<std::string>& servers,
                                 const std::vector<ServerFault>& faults) {
  const Resource& resource = request.resource;
  std::optional<Holder> broken;
  std::optional<Holder> other;
  const std::vector<ForeignAt> foreign = foreign_keys_in(votes, servers);
  std::size_t times_broken = 0;
  for (const BreakVote& vote : votes) {
    if (const auto* done = std::get_if<Broken>(&vote);
        done != nullptr && (!broken || broken->foreign))
      broken = done->holder;
    times_broken += std::holds_alternative<Broken>(vote) ? 1 : 0;
    if (const auto* left = std::get_if<OtherFence>(&vote)) other = left->holder;
  }
  const bool answered = votes.size() - faults.size() >= quorum_of(votes.size());
  output::Outcome outcome;
  if (!answered) {
    outcome =
        output::outcome_of("release", {resource}, output::result_for_faults(faults, votes.size()),
                           "no quorum answered; " + output::faults_text(faults));
  } else if (other && broken && broken_by_quorum(votes) == nullptr) {
    outcome = output::outcome_of(
        "release", {resource}, output::CommandResult::lost,
        fmt::format("broken at {} of {} servers only, the others have another fence: {}",
                    times_broken, votes.size(), output::held_text(*other)));
  } else if (!foreign.empty() && broken_by_quorum(votes) == nullptr) {
    std::string text;
    if (times_broken > 0)
      text = fmt::format("broken at {} of {} servers only; ", times_broken, votes.size());
    outcome = output::outcome_of("release", {resource}, output::CommandResult::usage,
                                 text + left_alone_text(resource, foreign));
  } else if (other && !broken) {
    outcome = output::outcome_of(
        "release", {resource}, output::CommandResult::lost,
        (request.only_if ? "left alone, it has another fence: " : "left alone, it has no slots: ") +
            output::held_text(*other));
  } else {
    outcome = output::outcome_of(
        "release", {resource}, broken ? output::CommandResult::broken : output::CommandResult::free,
        broken         ? "broken; it was " + output::held_text(*broken)
        : request.slot ? fmt::format("nothing to break: slot {} is free", *request.slot)
                       : "nothing to break: the lock is free");
  }
  outcome.holder = broken ? broken : other;
  if (!outcome.holder && !foreign.empty()) outcome.holder = foreign.front().key->holder;
  outcome.faults = faults;
  return outcome;
}

/// Breaks the locks one by one. With `and_foreign`, also breaks foreign keys, after it has
/// reported what they are.
asio::awaitable<ExitAs> break_all(Session& session, const BreakOptions& options) {
  KeyReport report(session);
  for (const Resource& resource : options.resources) {
    BreakRequest request{resource, options.only_if, options.breaker};
    request.slot = options.slot;
    std::vector<BreakVote> votes = co_await break_lock(session.server_set(), request);
    const std::vector<std::string> servers = session.server_set().names();
    const std::vector<ForeignAt> foreign = foreign_keys_in(votes, servers);
    if (options.and_foreign && !foreign.empty()) {
      session.console().notice(fmt::format("{}: breaking what is not a lock of redlock-cli: {}",
                                           output::key_text(resource), foreign_keys_text(foreign)));
      votes = co_await break_foreign(session.server_set(), request, std::move(votes));
    }
    const auto faults =
        faults_among(session.server_set(), [&](std::size_t i) { return &votes[i]; });
    output::Outcome outcome = outcome_of_break(request, votes, servers, faults);
    const bool is_broken_anywhere = std::ranges::any_of(
        votes, [](const BreakVote& vote) { return std::holds_alternative<Broken>(vote); });
    if (is_broken_anywhere) {
      session.console().audit(fmt::format("{}: {}: {}", output::key_text(resource),
                                          output::broke_text(request.breaker), outcome.message));
    }
    report.add(std::move(outcome));
  }
  co_await session.server_set().close(CloseMode::immediate);
  co_return report.finish();
}

}  // namespace

ExitAs release(Session& session, const LeaseHandle& lease) {
  return session.run(release_all(session, lease));
}

ExitAs break_locks(Session& session, const BreakOptions& options) {
  return session.run(break_all(session, options));
}

}  // namespace redlock::commands
