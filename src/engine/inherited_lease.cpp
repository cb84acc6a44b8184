#include "engine/inherited_lease.hpp"

#include <algorithm>
#include <functional>
#include <memory>

#include "core/backoff.hpp"
#include "core/validity.hpp"
#include "engine/ballot.hpp"

namespace redlock {
namespace {

/// The least time between two polls of a lease that is about to end.
constexpr Milliseconds min_interval{50};

/// The result of one poll.
struct Look {
  ExtendDecision decision = ExtendDecision::undecided;  ///< confirmed: the lease stands
  Instant t0;                                           ///< before the question
  Instant deadline;                                     ///< when confirmed
  bool left_by_hand = false;    ///< when confirmed: a quorum says that no `run` keeps it
  std::optional<Holder> other;  ///< when lost: the lease that holds the lock now, if any
  std::vector<ServerFault> faults;
};

/// The votes of such a round.
class LeaseCheckTally {
 public:
  LeaseCheckTally(std::size_t servers, LeaseId id) : votes_(servers), id_(std::move(id)) {}

  void count(std::size_t server, InspectVote vote) { votes_.count(server, std::move(vote)); }

  [[nodiscard]] const Holder* holder(const InspectVote& vote) const {
    const auto* taken = std::get_if<Taken>(&vote);
    return taken != nullptr && taken->holder.id == id_ ? &taken->holder : nullptr;
  }

  [[nodiscard]] ExtendDecision decision() const {
    std::size_t standing = 0;
    std::size_t gone = 0;
    const std::vector<InspectVote> votes = this->votes();
    for (const InspectVote& vote : votes) {
      if (holder(vote) != nullptr) {
        ++standing;
      } else if (!std::holds_alternative<Fault>(vote)) {
        ++gone;
      }
    }
    if (standing >= quorum_of(votes.size())) return ExtendDecision::confirmed;
    if (votes.size() - gone < quorum_of(votes.size())) return ExtendDecision::lost;
    return votes_.complete() ? ExtendDecision::too_few_answers : ExtendDecision::undecided;
  }

  [[nodiscard]] std::vector<InspectVote> votes() const {
    return without_duplicates(votes_.votes());
  }

 private:
  VoteList<InspectVote> votes_;
  LeaseId id_;
};

asio::awaitable<Look> look(ServerSet& server_set, Resource resource, LeaseId id) {
  const auto ballot = std::make_shared<Ballot<LeaseCheckTally>>(server_set, id);
  Look found;
  found.t0 = server_set.clock().now();
  const Instant end = found.t0 + server_set.server_timeout();
  for (std::size_t i = 0; i < server_set.size(); ++i) {
    ask(server_set, ballot, i,
        [resource, id, end](LockServer& server) { return server.inspect(resource, id, end); });
  }
  while (ballot->tally.decision() == ExtendDecision::undecided)
    co_await ballot->event->wait_until(Instant::max());

  found.decision = ballot->tally.decision();
  const std::vector<InspectVote> votes = ballot->tally.votes();
  found.faults = faults_among(server_set, [&](std::size_t i) { return &votes[i]; });
  std::vector<Duration> remaining;
  // A server may have lost the owner record, and not the lease.
  std::size_t supervising = 0;
  std::size_t unsupervised = 0;
  for (const InspectVote& vote : votes) {
    const auto* taken = std::get_if<Taken>(&vote);
    if (const Holder* holder = ballot->tally.holder(vote)) {
      if (holder->owner) ++(holder->owner->supervised ? supervising : unsupervised);
      if (holder->remaining) remaining.push_back(*holder->remaining);
    } else if (taken != nullptr && !found.other) {
      found.other = taken->holder;
    }
  }
  if (found.decision != ExtendDecision::confirmed) co_return found;
  // A lease without an expiry shows no end: another client removed it, and the keeper will set one.
  if (remaining.size() < quorum_of(votes.size())) {
    found.decision = ExtendDecision::too_few_answers;
    co_return found;
  }
  found.left_by_hand = supervising == 0 && unsupervised >= quorum_of(votes.size());
  std::ranges::sort(remaining, std::greater<>());
  const auto ttl = Ttl::from(remaining[quorum_of(votes.size()) - 1]);
  found.deadline = ttl ? redlock::deadline(found.t0, *ttl) : found.t0;
  co_return found;
}

NotOurs not_ours(std::optional<Holder> other) {
  const NotOurs::Why why = other ? NotOurs::Why::held : NotOurs::Why::gone;
  return {why, std::move(other)};
}

/// Whether a holder with this hold has no need to wait for this mode. An exclusive holder has every
/// slot.
bool is_enough(const Hold& hold, const Mode& mode) {
  if (!hold.shared) return true;
  if (!mode.shared) return false;
  return mode.slots == 0 || (hold.slot && *hold.slot < mode.slots);
}

Inheritance unanswered(std::vector<ServerFault> faults) {
  Inheritance inheritance;
  inheritance.unanswered = true;
  inheritance.faults = std::move(faults);
  return inheritance;
}

}  // namespace

asio::awaitable<Inheritance> inherit(ServerSet& server_set, const AcquireOrder& order) {
  const ParentClaim parent_claim = *order.parent_claim;
  Look found = co_await look(server_set, order.resource, parent_claim.id);
  Inheritance inheritance;
  if (found.decision == ExtendDecision::too_few_answers)
    co_return unanswered(std::move(found.faults));
  if (found.decision != ExtendDecision::confirmed) co_return inheritance;
  if (!found.left_by_hand && !parent_claim.guarded) co_return inheritance;
  if (!is_enough(parent_claim.hold, order.mode)) {
    inheritance.too_weak = true;
    co_return inheritance;
  }
  Instant deadline = found.deadline;
  if (!parent_claim.guarded) {
    // No other process renews it, so it gets the ttl that is wanted here.
    HeldLease held(server_set, order.resource, parent_claim.token, parent_claim.fence,
                   parent_claim.hold);
    ExtendResult extended = co_await held.extend(order.ttl);
    if (extended.decision == ExtendDecision::too_few_answers)
      co_return unanswered(std::move(extended.faults));
    if (extended.decision != ExtendDecision::confirmed) co_return inheritance;
    deadline = redlock::deadline(extended.t0, order.ttl);
  }
  if (server_set.clock().now() + order.needed_validity >= deadline) {
    inheritance.too_short = parent_claim.guarded;
    co_return inheritance;
  }
  const Keeping keeping = parent_claim.guarded ? Keeping::inherited : Keeping::handed_over;
  inheritance.lease.emplace(Lease{order.resource, parent_claim.token, parent_claim.id,
                                  parent_claim.fence, order.ttl, deadline, keeping,
                                  parent_claim.hold});
  if (order.mode.slots > 0 && !parent_claim.hold.shared) inheritance.lease->hold.slot = 0;
  co_return inheritance;
}

asio::awaitable<ExtendResult> check_lease(ServerSet& server_set, Resource resource, LeaseId id) {
  Look found = co_await look(server_set, std::move(resource), std::move(id));
  ExtendResult result;
  result.decision = found.decision;
  result.t0 = found.t0;
  result.faults = std::move(found.faults);
  if (found.decision == ExtendDecision::lost) result.not_ours = not_ours(std::move(found.other));
  co_return result;
}

InheritedLease::InheritedLease(ServerSet& server_set, const Lease& lease)
    : server_set_(server_set),
      resource_(lease.resource),
      id_(lease.id),
      ttl_(lease.ttl),
      deadline_(lease.deadline),
      next_poll_(poll_after(server_set.clock().now())) {}

/// Polls in time to see the guard's next extension, whatever the ttl of each.
Instant InheritedLease::poll_after(Instant last) const {
  return last + std::clamp<Duration>((deadline_ - last) / 4, min_interval,
                                     std::max<Duration>(extend_interval(ttl_), min_interval));
}

asio::awaitable<std::variant<LeaseExtended, LeaseInTrouble, LeaseEnded>> InheritedLease::next() {
  const Clock& clock = server_set_.clock();
  co_await sleep_until(clock, std::min(next_poll_, deadline_));
  if (clock.now() >= deadline_) co_return LeaseEnded{LeaseState::expired, std::nullopt};
  Look found = co_await look(server_set_, resource_, id_);
  if (found.decision == ExtendDecision::lost) {
    LeaseEnded ended{LeaseState::lost, not_ours(std::move(found.other))};
    co_return ended;
  }
  if (clock.now() >= deadline_) co_return LeaseEnded{LeaseState::expired, std::nullopt};
  if (found.decision == ExtendDecision::confirmed) {
    deadline_ = std::max(deadline_, found.deadline);
    next_poll_ = poll_after(found.t0);
    co_return LeaseExtended{deadline_, std::exchange(failures_, 0) > 0};
  }
  next_poll_ = clock.now() + unavailable_delay(failures_, server_set_.random());
  ++failures_;
  LeaseInTrouble trouble{std::move(found.faults), failures_ == 1};
  co_return trouble;
}

}  // namespace redlock
