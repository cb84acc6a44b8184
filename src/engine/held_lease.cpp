#include "engine/held_lease.hpp"

#include <algorithm>

#include "core/backoff.hpp"
#include "core/last_runs.hpp"
#include "core/validity.hpp"
#include "engine/round.hpp"
#include "store/script_calls.hpp"

namespace redlock {
namespace {

/// The first "not ours" among the votes. A vote that knows of a release by hand takes precedence,
/// since only a server that granted knows of one. A vote that knows who broke the lease takes
/// precedence over the others.
template <class Votes>
std::optional<NotOurs> first_not_ours(std::size_t servers, Votes vote_of) {
  std::optional<NotOurs> first;
  for (std::size_t i = 0; i < servers; ++i) {
    const auto* vote = vote_of(i);
    const auto* not_ours = vote != nullptr ? std::get_if<NotOurs>(vote) : nullptr;
    if (not_ours == nullptr) continue;
    if (not_ours->why == NotOurs::Why::released) return *not_ours;
    if (!first || (not_ours->breaker && !first->breaker)) first = *not_ours;
  }
  return first;
}

template <class Votes>
bool all_in(std::size_t servers, Votes vote_of) {
  for (std::size_t i = 0; i < servers; ++i) {
    if (vote_of(i) == nullptr) return false;
  }
  return true;
}

bool is_fault(const ExtendVote& vote) {
  return std::holds_alternative<Fault>(vote);
}

bool lost_the_key(const ExtendVote& vote) {
  const auto* not_ours = std::get_if<NotOurs>(&vote);
  return not_ours != nullptr && not_ours->why == NotOurs::Why::gone;
}

/// A process that is about to end waits for servers slower than the quorum: as long again as the
/// decision took, but at least this long, so that scheduling alone does not make a server late.
constexpr Milliseconds min_lingering{20};

/// How long a server may take from reading an acquire to answering it. If the client has closed the
/// connection by then, the server drops the release that follows.
constexpr Milliseconds max_execution{3000};

Instant end_of_lingering(const Clock& clock, Instant t0) {
  const Instant now = clock.now();
  return now + std::max<Duration>(now - t0, min_lingering);
}

/// Releases at one server. A refusal proves that the server did not act, so the question may be
/// repeated, and the later answer counts. After silence it is not repeated here: an answer of
/// "gone" might be the effect of the first question. `refused` runs before each repetition.
asio::awaitable<ReleaseVote> release_at(ServerSet& server_set, LockServer& server,
                                        ReleaseRequest request, Instant answer_by,
                                        std::function<void(const Fault&)> refused) {
  for (unsigned k = 0;; ++k) {
    const ReleaseVote vote = co_await server.release(request, answer_by);
    const auto* fault = std::get_if<Fault>(&vote);
    if (fault == nullptr || !fault->refused) co_return vote;
    const Instant next = server_set.clock().now() + unavailable_delay(k, server_set.random());
    if (next >= answer_by) co_return vote;
    refused(*fault);
    co_await sleep_until(server_set.clock(), next);
  }
}

/// Whether every awaited server has voted, and the votes decide.
bool is_settled(const VoteList<ReleaseVote>& tally, const std::vector<bool>& awaited) {
  if (tally.complete()) return true;
  for (std::size_t i = 0; i < awaited.size(); ++i) {
    if (awaited[i] && !tally.has(i)) return false;
  }
  return decide_release(tally.votes()) != ReleaseDecision::unavailable;
}

}  // namespace

HeldLease::HeldLease(ServerSet& server_set, Resource resource, Token token, Fence fence, Hold hold,
                     std::optional<Ttl> ttl)
    : server_set_(server_set),
      resource_(std::move(resource)),
      token_(std::move(token)),
      fence_(fence),
      hold_(hold),
      ttl_(ttl),
      released_(std::make_shared<bool>(false)) {}

asio::awaitable<ExtendResult> HeldLease::extend(Ttl ttl, Instant end, bool by_hand) {
  struct ExtendBallot : Ballot<ExtendTally> {
    using Ballot::Ballot;
    std::optional<HealRequest> heal;       ///< set once this round is confirmed
    std::optional<std::size_t> duplicate;  ///< a server that is the same one as another
  };
  const auto ballot = std::make_shared<ExtendBallot>(server_set_);
  ExtendResult result;
  result.t0 = server_set_.clock().now();
  if (*released_) co_return result;
  const Instant answer_by = std::min(end, result.t0 + server_set_.server_timeout());

  const auto heal_at = [&server_set = server_set_, released = released_](
                           std::size_t i, const HealRequest& request) {
    if (*released) return;
    // A grant of other slots that is still to be released has the same token. Its release would
    // delete this copy, too.
    if (server_set.has_leftover(i, request.resource, request.token)) return;
    spawn(server_set.executor(), [&server_set, i, request]() -> asio::awaitable<void> {
      // The next round shows whether it worked.
      (void)co_await server_set.server(i).heal(
          request, server_set.clock().now() + server_set.server_timeout());
    });
  };
  const ExtendRequest request{resource_, token_, ttl, hold_.slots, fence_};
  for (std::size_t i = 0; i < server_set_.size(); ++i) {
    ask(
        server_set_, std::shared_ptr<Ballot<ExtendTally>>(ballot), i,
        [request, answer_by](LockServer& server) { return server.extend(request, answer_by); },
        [i, ballot, heal_at, asked = asked_](const ExtendVote& vote) {
          // The request of a single server is enough: stopping is always safe (R12).
          const auto* extended = std::get_if<Extended>(&vote);
          if (extended != nullptr && extended->stop_request) asked(*extended->stop_request);
          // The tally has replaced this vote by a fault: its process also voted as another server.
          if (!is_fault(vote) && is_fault(*ballot->tally.vote_of(i))) ballot->duplicate = i;
          if (ballot->heal && lost_the_key(vote)) heal_at(i, *ballot->heal);
        });
  }
  while (ballot->tally.decision() == ExtendDecision::undecided)
    co_await ballot->event->wait_until(Instant::max());

  const auto vote_of = [&](std::size_t i) { return ballot->tally.vote_of(i); };
  result.decision = ballot->tally.decision();
  result.not_ours = first_not_ours(server_set_.size(), vote_of);
  result.faults = faults_among(server_set_, vote_of);
  if (result.decision == ExtendDecision::confirmed) {
    result.deadline = deadline(result.t0, ttl);
    // Copy it from a server that has the record. A cluster that is moving the key cannot read it.
    for (std::size_t i = 0;
         i < server_set_.size() && (!ballot->heal || ballot->heal->provenance.record.empty());
         ++i) {
      const auto* vote = vote_of(i);
      const auto* extended = vote != nullptr ? std::get_if<Extended>(vote) : nullptr;
      if (extended != nullptr)
        ballot->heal = HealRequest{
            resource_, token_, ttl, std::max(fence_, extended->fence), extended->provenance, hold_};
    }
    for (std::size_t i = 0; i < server_set_.size(); ++i) {
      if (const auto* vote = vote_of(i); vote != nullptr && lost_the_key(*vote))
        heal_at(i, *ballot->heal);
    }
    const Instant timeout = end_of_lingering(server_set_.clock(), result.t0);
    bool in_time = by_hand;
    while (in_time && !all_in(server_set_.size(), vote_of))
      in_time = co_await ballot->event->wait_until(timeout);
    // After a failed round, it is among the faults.
    if (ballot->duplicate) server_set_.report_late_duplicate(*ballot->duplicate);
  }
  co_return result;
}

asio::awaitable<ReleaseResult> HeldLease::release(bool by_hand, Duration expire_in,
                                                  std::optional<Owner> finished,
                                                  std::optional<RunRecord> run) {
  *released_ = true;
  if (run && !run->passed_on) run->run.fence = fence_;
  const auto ballot = std::make_shared<Ballot<VoteList<ReleaseVote>>>(server_set_);
  const auto awaited = std::make_shared<std::vector<bool>>();
  // A release by hand is our first question, so no server is known to answer until it refuses.
  for (std::size_t i = 0; i < server_set_.size(); ++i)
    awaited->push_back(!by_hand && server_set_.answered(i));
  const auto refusals = std::make_shared<std::vector<std::optional<Fault>>>(server_set_.size());

  const Instant t0 = server_set_.clock().now();
  const Instant answer_by = t0 + server_set_.server_timeout();
  for (std::size_t i = 0; i < server_set_.size(); ++i) {
    ReleaseRequest request{resource_, token_, by_hand, expire_in};
    request.finished = finished;
    if (run) request.run = as_of(*run, t0);
    if (ttl_)
      request.not_undone = [&server_set = server_set_,
                            leftover = leftover_at(i, t0, expire_in, run)] {
        server_set.clear_away(leftover);
      };
    const auto refused = [awaited, refusals, i](const Fault& fault) {
      (*awaited)[i] = true;
      (*refusals)[i] = fault;
    };
    ask(server_set_, ballot, i,
        [&server_set = server_set_, request, answer_by, refused](LockServer& server) {
          return release_at(server_set, server, request, answer_by, refused);
        });
  }
  while (!is_settled(ballot->tally, *awaited)) co_await ballot->event->wait_until(Instant::max());
  const Instant timeout = end_of_lingering(server_set_.clock(), t0);
  bool in_time = by_hand;
  while (in_time && !ballot->tally.complete())
    in_time = co_await ballot->event->wait_until(timeout);
  while (!is_settled(ballot->tally, *awaited)) co_await ballot->event->wait_until(Instant::max());

  std::vector<ReleaseVote> votes = ballot->tally.votes();
  // A server that refused and has been silent since may still hold the lease.
  for (std::size_t i = 0; i < votes.size(); ++i) {
    if (const auto& refusal = (*refusals)[i]; refusal && !is_answer(votes[i])) votes[i] = *refusal;
  }
  if (ttl_) clear_away_leftovers(votes, t0, expire_in, run);
  const auto vote_of = [&](std::size_t i) { return &votes[i]; };
  ReleaseResult result;
  result.decision = decide_release(votes);
  result.not_ours = first_not_ours(votes.size(), vote_of);
  result.faults = faults_among(server_set_, vote_of);
  result.recorded = is_recorded(votes);
  for (const ReleaseVote& vote : votes) {
    if (const auto* supervised = std::get_if<Supervised>(&vote))
      result.supervisor = supervised->holder;
  }
  co_return result;
}

Leftover HeldLease::leftover_at(std::size_t server, Instant t0, Duration expire_in,
                                const std::optional<RunRecord>& run) const {
  Leftover leftover{server, resource_, token_, t0 + max_retention(*ttl_), t0 + expire_in, {}, run};
  leftover.unread = !fits_into_one_read(resource_);
  return leftover;
}

void HeldLease::clear_away_leftovers(const std::vector<ReleaseVote>& votes, Instant t0,
                                     Duration expire_in, const std::optional<RunRecord>& run) {
  for (std::size_t i = 0; i < votes.size(); ++i) {
    if (is_final(votes[i])) continue;
    const bool never_answered = !server_set_.ever_answered(i);
    if (never_answered && !server_set_.server(i).was_reached()) continue;
    Leftover leftover = leftover_at(i, t0, expire_in, run);
    // If the server has read the acquire by now, it will answer it within max_execution. If it has
    // not, it will read the release together with it.
    if (never_answered && !leftover.unread)
      leftover.until = std::min(leftover.until, t0 + max_execution);
    leftover.unread = leftover.unread || never_answered;
    server_set_.clear_away(std::move(leftover));
  }
}

}  // namespace redlock
