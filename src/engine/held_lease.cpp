#include "engine/held_lease.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/backoff.hpp"
#include "core/last_runs.hpp"
#include "core/validity.hpp"
#include "engine/release_round.hpp"
#include "engine/round.hpp"
#include "store/owner_record.hpp"

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

bool is_fault(const ExtendVote& vote) {
  return std::holds_alternative<Fault>(vote);
}

/// Whether another lease of this tool is in the place of ours: perhaps the grant of a waiter, whose
/// attempt fails at the other servers and is undone.
template <class Vote>
bool is_in_the_way(const Vote& vote) {
  const auto* not_ours = std::get_if<NotOurs>(&vote);
  return not_ours != nullptr && not_ours->holder && !not_ours->holder->foreign;
}

/// Whether our lease is not there, and may be given back without taking the place of another.
bool lacks_the_key(const ExtendVote& vote) {
  const auto* not_ours = std::get_if<NotOurs>(&vote);
  return not_ours != nullptr && (not_ours->why == NotOurs::Why::gone || is_in_the_way(vote));
}

ExtendResult undecided_since(Instant t0) {
  ExtendResult result;
  result.t0 = t0;
  return result;
}

/// What a round of extensions shares with its lease, which may have ended when an answer comes.
struct LeaseLinks {
  std::function<void(const StopRequest&)> asked;  ///< see HeldLease::on_stop_request
  std::function<void()> late;                     ///< see HeldLease::on_late_answer
  std::shared_ptr<LeaseClaims> claims;
  std::shared_ptr<const bool> released;
};

}  // namespace

/// One round of questions to extend a lease. Shared with the questions, whose answers may come
/// after the decision: then a server that lost the lease is still healed.
class HeldLease::ExtendRound : public std::enable_shared_from_this<ExtendRound> {
 public:
  ExtendRound(ServerSet& server_set, ExtendRequest request, Hold hold, LeaseLinks links, Instant t0)
      : server_set_(server_set),
        request_(std::move(request)),
        hold_(std::move(hold)),
        links_(std::move(links)),
        t0_(t0),
        ballot_(std::make_shared<Ballot<ExtendTally>>(server_set)) {}

  void ask_all(Instant answer_by) {
    for (std::size_t i = 0; i < server_set_.size(); ++i) {
      ExtendRequest request = request_;
      request.late = [self = shared_from_this(), i](const ExtendVote& vote) {
        self->take_late(i, vote);
      };
      ask(
          server_set_, ballot_, i,
          [request, answer_by](LockServer& server) { return server.extend(request, answer_by); },
          [self = shared_from_this(), i](const ExtendVote& vote) { self->take(i, vote); });
    }
  }

  /// Ends at the decision, at the latest at `end`, or when it is interrupted. Returns whether it
  /// was interrupted before the decision.
  asio::awaitable<bool> decided(Instant end) {
    interrupted_ = false;
    bool in_time = true;
    while (in_time && !interrupted_ && tally().decision() == ExtendDecision::undecided)
      in_time = co_await ballot_->event->wait_until(end);
    co_return in_time&& tally().decision() == ExtendDecision::undecided;
  }

  void interrupt() {
    interrupted_ = true;
    ballot_->event->notify();
  }

  [[nodiscard]] Instant t0() const { return t0_; }

  /// Waits for the servers that have not voted yet.
  asio::awaitable<void> complete(Instant timeout) {
    bool in_time = true;
    while (in_time && !all_voted()) in_time = co_await ballot_->event->wait_until(timeout);
  }

  /// Heals the servers that lack the lease, or its record, now and when their votes come. `known`:
  /// what was stored about the lease, in case that no server has it any more.
  void heal_from_now_on(Provenance known) {
    heal_ = heal_request(std::move(known));
    for (std::size_t i = 0; i < server_set_.size(); ++i) {
      if (const ExtendVote* vote = tally().vote_of(i)) heal_if_needed(i, *vote);
    }
  }

  /// What a server stores about the lease; nullopt if none has its record. A cluster that is moving
  /// the key cannot read it. A server that missed the lift of a hold must not bring the hold back.
  [[nodiscard]] std::optional<Provenance> provenance() const {
    std::optional<Provenance> first;
    for (std::size_t i = 0; i < server_set_.size(); ++i) {
      const Extended* extended = extended_by(i);
      if (extended == nullptr || extended->provenance.record.empty()) continue;
      if (shows_lift(extended->provenance.record)) return extended->provenance;
      if (!first) first = extended->provenance;
    }
    return first;
  }

  [[nodiscard]] const ExtendTally& tally() const { return ballot_->tally; }

  /// Until when the lease is good, once a quorum has confirmed it: the quorum-th largest of its
  /// ends there.
  [[nodiscard]] Instant deadline() const {
    std::vector<Instant> ends;
    for (std::size_t i = 0; i < server_set_.size(); ++i) {
      if (const Extended* extended = extended_by(i)) ends.push_back(end_shown_by(*extended));
    }
    std::ranges::sort(ends, std::greater());
    return ends.at(quorum_of(server_set_.size()) - 1);
  }

  /// A server whose vote showed that it is the same one as another.
  [[nodiscard]] std::optional<std::size_t> duplicate() const { return duplicate_; }

 private:
  /// Until when the lease is good at a server that extended it in this round, whenever the answer
  /// comes. A user of the lease may rely on the end of its own entry, and on no other (U2).
  [[nodiscard]] Instant end_shown_by(const Extended& extended) const {
    if (!request_.user) return redlock::deadline(t0_, request_.ttl);
    const auto rest = Ttl::from(std::min<Duration>(extended.remaining, Ttl::max));
    return rest ? redlock::deadline(t0_, *rest) : t0_;
  }

  void take(std::size_t server, const ExtendVote& vote) {
    note(server, vote);
    // The tally has replaced this vote by a fault: its process also voted as another server.
    if (!is_fault(vote) && is_fault(*tally().vote_of(server))) duplicate_ = server;
    if (heal_) heal_if_needed(server, vote);
  }

  /// An answer after the server timeout. The round is over, and nothing is healed by it.
  void take_late(std::size_t server, const ExtendVote& vote) {
    if (*links_.released) return;
    const std::optional<Instant> before = links_.claims->deadline();
    ballot_->tally.count(server, vote);
    note(server, vote);
    if (links_.claims->deadline() > before) links_.late();
  }

  void note(std::size_t server, const ExtendVote& vote) {
    // The request of a single server is enough: stopping is always safe (R12).
    const auto* extended = std::get_if<Extended>(&vote);
    if (extended != nullptr && extended->stop_request) links_.asked(*extended->stop_request);

    // A duplicate has no claim of its own.
    const ExtendVote& counted = *tally().vote_of(server);
    if (const auto* claim = std::get_if<Extended>(&counted)) {
      links_.claims->note(server, t0_, end_shown_by(*claim), claim->server.run_id);
    } else if (std::holds_alternative<NotOurs>(counted)) {
      links_.claims->note(server, t0_, std::nullopt);
    }
  }

  [[nodiscard]] bool all_voted() const {
    for (std::size_t i = 0; i < server_set_.size(); ++i) {
      if (tally().vote_of(i) == nullptr) return false;
    }
    return true;
  }

  [[nodiscard]] const Extended* extended_by(std::size_t server) const {
    const ExtendVote* vote = tally().vote_of(server);
    return vote != nullptr ? std::get_if<Extended>(vote) : nullptr;
  }

  [[nodiscard]] HealRequest heal_request(Provenance known) const {
    Fence fence = request_.fence;
    for (std::size_t i = 0; i < server_set_.size(); ++i) {
      if (const Extended* extended = extended_by(i)) fence = std::max(fence, extended->fence);
    }
    return {request_.resource, request_.token, request_.ttl, fence,
            std::move(known),  hold_,          request_.user};
  }

  void heal_if_needed(std::size_t server, const ExtendVote& vote) {
    const auto* extended = std::get_if<Extended>(&vote);
    const bool lost_the_record = extended != nullptr && extended->provenance.record.empty() &&
                                 !heal_->provenance.record.empty();
    if (!lost_the_record && !lacks_the_key(vote)) return;
    // A grant of other slots that is still to be released has the same token. Its release would
    // delete this copy, too.
    if (server_set_.has_leftover(server, heal_->resource, heal_->token)) return;
    spawn(server_set_.executor(), [self = shared_from_this(), server, waits = is_in_the_way(vote)] {
      return self->heal(server, waits);
    });
  }

  /// Heals a server. While another lease is in the way, which may be the short-lived grant of a
  /// waiter, retries for one server timeout: by then the waiter has undone it. The next round shows
  /// whether the heal worked. `waits`: another lease was in the way just now.
  asio::awaitable<void> heal(std::size_t server, bool waits) {
    const Clock& clock = server_set_.clock();
    const Instant end = clock.now() + server_set_.server_timeout();
    for (unsigned k = 0; !*links_.released; ++k) {
      if (waits) {
        const Instant next = clock.now() + unavailable_delay(k, server_set_.random());
        if (next >= end) co_return;
        co_await sleep_until(clock, next);
        if (*links_.released) co_return;
      }
      const Instant answer_by = clock.now() + server_set_.server_timeout();
      const HealVote vote = co_await server_set_.server(server).heal(*heal_, answer_by);
      waits = is_in_the_way(vote);
      if (!waits) co_return;
    }
  }

  ServerSet& server_set_;
  ExtendRequest request_;
  Hold hold_;
  LeaseLinks links_;
  Instant t0_;
  std::shared_ptr<Ballot<ExtendTally>> ballot_;
  std::optional<HealRequest> heal_;  ///< set once the round is confirmed
  std::optional<std::size_t> duplicate_;
  bool interrupted_ = false;
};

HeldLease::HeldLease(ServerSet& server_set, Resource resource, Token token, Fence fence, Hold hold,
                     std::optional<Ttl> ttl)
    : server_set_(server_set),
      resource_(std::move(resource)),
      token_(std::move(token)),
      fence_(fence),
      hold_(std::move(hold)),
      ttl_(ttl),
      provenance_at_(server_set.clock().now()),
      waiting_(std::make_shared<std::weak_ptr<ExtendRound>>()),
      claims_(std::make_shared<LeaseClaims>(server_set.size())),
      released_(std::make_shared<bool>(false)) {}

HeldLease::HeldLease(ServerSet& server_set, const Lease& lease)
    : HeldLease(server_set, lease.resource, lease.token, lease.fence, lease.hold, lease.ttl) {
  if (lease.provenance) provenance_ = *lease.provenance;
  user_ = lease.user;
  granted_until_ = lease.deadline;
}

std::shared_ptr<HeldLease::ExtendRound> HeldLease::begin_round(Ttl ttl, Instant end) {
  const Instant t0 = server_set_.clock().now();
  const auto late = [notify = late_, waiting = waiting_] {
    notify();
    if (const auto newer = waiting->lock()) newer->interrupt();
  };
  auto round =
      std::make_shared<ExtendRound>(server_set_,
                                    ExtendRequest{resource_, token_, ttl, hold_.slots, fence_,
                                                  user_, is_new_user_, hold_.slot_names},
                                    hold_, LeaseLinks{asked_, late, claims_, released_}, t0);
  round->ask_all(std::min(end, t0 + server_set_.server_timeout()));
  return round;
}

ExtendResult HeldLease::conclude(ExtendRound& round) {
  const auto vote_of = [&](std::size_t i) { return round.tally().vote_of(i); };
  ExtendResult result = undecided_since(round.t0());
  result.decision = round.tally().decision();
  if (result.decision == ExtendDecision::undecided)
    result.decision = ExtendDecision::too_few_answers;
  result.not_ours = first_not_ours(server_set_.size(), vote_of);
  result.faults = faults_among(server_set_, vote_of);
  if (result.decision != ExtendDecision::confirmed) return result;

  result.deadline = round.deadline();
  is_new_user_ = false;
  const Instant now = server_set_.clock().now();
  auto provenance = round.provenance();
  const bool was_lifted = provenance && shows_lift(provenance_.record);
  if (provenance && (!was_lifted || shows_lift(provenance->record))) {
    provenance_ = std::move(*provenance);
    provenance_at_ = now;
  }
  Provenance known = provenance_;
  known.age += now - provenance_at_;
  round.heal_from_now_on(std::move(known));
  return result;
}

asio::awaitable<ExtendResult> HeldLease::extend(Ttl ttl, Instant end, bool by_hand) {
  if (*released_) co_return undecided_since(server_set_.clock().now());
  const std::shared_ptr<ExtendRound> round = begin_round(ttl, end);
  co_await round->decided(end);
  ExtendResult result = conclude(*round);
  if (result.decision != ExtendDecision::confirmed) co_return result;
  if (by_hand) co_await round->complete(end_of_lingering(server_set_.clock(), result.t0));
  // After a failed round, it is among the faults.
  if (round->duplicate()) server_set_.report_late_duplicate(*round->duplicate());
  co_return result;
}

std::optional<Place> HeldLease::place_of_keeper() const {
  const std::optional<Owner> keeper = decode_owner(provenance_.record);
  return keeper ? keeper->place : std::nullopt;
}

asio::awaitable<ExtendResult> HeldLease::keep(Ttl ttl, Instant end) {
  if (*released_) co_return undecided_since(server_set_.clock().now());
  std::shared_ptr<ExtendRound> round = std::exchange(open_, nullptr);
  if (round == nullptr) round = begin_round(ttl, end);
  *waiting_ = round;
  while (co_await round->decided(end)) {
    if (claimed_until() <= end) continue;
    open_ = round;
    co_return undecided_since(round->t0());
  }
  waiting_->reset();
  ExtendResult result = conclude(*round);
  if (result.decision == ExtendDecision::confirmed && round->duplicate())
    server_set_.report_late_duplicate(*round->duplicate());
  co_return result;
}

asio::awaitable<ReleaseResult> HeldLease::release(bool by_hand, ReleaseTerms terms) {
  *released_ = true;
  ReleaseRequest request{resource_, token_, by_hand, terms.expire_in};
  if (user_) request.user = user_->id;
  request.may_have_users = terms.may_have_users || !provenance_.supervised;
  request.stop_users = std::move(terms.stop_users);
  request.tombstone_life = lifted_for_;
  request.finished = std::move(terms.finished);
  request.as_of = server_set_.clock().now();
  if (auto& run = terms.run) {
    if (!run->passed_on) run->run.fence = fence_;
    request.run = as_of(std::move(*run), request.as_of);
  }
  std::optional<Duration> retention;
  if (ttl_) retention = max_retention(*ttl_);
  // A user's entry may last for as long as the lease.
  const Instant until = std::max(granted_until_, claims_->deadline().value_or(granted_until_));
  if (retention && user_) retention = std::max(*retention, until - request.as_of);
  const bool is_left = request.may_have_users && !user_ && terms.expire_in == Duration::zero();
  if (is_left && retention) request.tombstone_life = std::max(request.tombstone_life, *retention);
  const bool leaves_tombstones = by_hand || is_left;
  const std::vector<ReleaseVote> votes =
      co_await release_at_all(server_set_, std::move(request), retention, leaves_tombstones);

  const auto vote_of = [&](std::size_t i) { return &votes[i]; };
  ReleaseResult result;
  result.decision = decide_release(votes);
  result.was_released = was_released(votes);
  result.not_ours = first_not_ours(votes.size(), vote_of);
  result.faults = faults_among(server_set_, vote_of);
  result.recorded = is_recorded(votes);
  for (const ReleaseVote& vote : votes) {
    if (const auto* supervised = std::get_if<Supervised>(&vote))
      result.supervisor = supervised->holder;
    const auto* released = std::get_if<Released>(&vote);
    if (released != nullptr && released->left_to_users) result.left_to_users = true;
  }
  co_return result;
}

}  // namespace redlock
