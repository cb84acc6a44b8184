#include "engine/borrowed_lease.hpp"

#include <algorithm>
#include <functional>
#include <memory>

#include "core/backoff.hpp"
#include "core/validity.hpp"
#include "engine/ballot.hpp"

namespace redlock {
namespace {

/// Between two looks at a lease that comes to its end.
constexpr Milliseconds shortest_interval{50};

/// What one round of looking found.
struct Look {
  ExtendDecision decision = ExtendDecision::undecided;  ///< confirmed: it stands
  Instant t0;                                           ///< before the question
  Instant deadline;                                     ///< when confirmed
  bool supervised = false;                              ///< when confirmed: a `run` keeps it
  std::optional<Holder> other;                          ///< when lost: who has it now, if anybody
  std::vector<ServerFault> faults;
};

/// The votes of such a round.
class LookTally {
 public:
  LookTally(std::size_t servers, LeaseId id) : votes_(servers), id_(std::move(id)) {}

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
    return votes_.complete() ? ExtendDecision::unconfirmed : ExtendDecision::undecided;
  }

  [[nodiscard]] std::vector<InspectVote> votes() const { return without_twins(votes_.votes()); }

 private:
  VoteList<InspectVote> votes_;
  LeaseId id_;
};

asio::awaitable<Look> look(Electorate& electorate, Resource resource, LeaseId id) {
  const auto ballot = std::make_shared<Ballot<LookTally>>(electorate, id);
  Look found;
  found.t0 = electorate.clock().now();
  const Instant end = found.t0 + electorate.server_timeout();
  for (std::size_t i = 0; i < electorate.size(); ++i) {
    ask(electorate, ballot, i, [resource, id, end](LockServer& server) { return server.inspect(resource, id, end); });
  }
  while (ballot->tally.decision() == ExtendDecision::undecided) co_await ballot->bell->wait_until(Instant::max());

  found.decision = ballot->tally.decision();
  const std::vector<InspectVote> votes = ballot->tally.votes();
  found.faults = faults_among(electorate, [&](std::size_t i) { return &votes[i]; });
  std::vector<Duration> remaining;
  for (const InspectVote& vote : votes) {
    const auto* taken = std::get_if<Taken>(&vote);
    if (const Holder* holder = ballot->tally.holder(vote)) {
      found.supervised = holder->owner && holder->owner->supervised;
      if (holder->remaining) remaining.push_back(*holder->remaining);
    } else if (taken != nullptr && !found.other) {
      found.other = taken->holder;
    }
  }
  if (found.decision != ExtendDecision::confirmed) co_return found;
  // One without an expiry tells no end: somebody meddled, and the keeper will give it one.
  if (remaining.size() < quorum_of(votes.size())) {
    found.decision = ExtendDecision::unconfirmed;
    co_return found;
  }
  std::ranges::sort(remaining, std::greater<>());
  const auto ttl = Ttl::from(remaining[quorum_of(votes.size()) - 1]);
  found.deadline = ttl ? redlock::deadline(found.t0, *ttl) : found.t0;
  co_return found;
}

NotOurs not_ours(std::optional<Holder> other) {
  const NotOurs::Why why = other ? NotOurs::Why::held : NotOurs::Why::gone;
  return {why, std::move(other)};
}

/// Whether who holds the lock so has no need to wait for what is wanted. Whoever has it alone has every seat.
bool is_enough(const Hold& hold, const Mode& mode) {
  if (!hold.shared) return true;
  if (!mode.shared) return false;
  return mode.seats == 0 || (hold.seat && *hold.seat < mode.seats);
}

}  // namespace

asio::awaitable<Borrowing> borrow(Electorate& electorate, const AcquireOrder& order) {
  const Enclosure enclosure = *order.enclosure;
  const Look found = co_await look(electorate, order.resource, enclosure.id);
  Borrowing borrowing;
  if (found.decision != ExtendDecision::confirmed) co_return borrowing;
  if (found.supervised && !enclosure.guarded) co_return borrowing;
  if (!is_enough(enclosure.hold, order.mode)) {
    borrowing.too_weak = true;
    co_return borrowing;
  }
  Instant deadline = found.deadline;
  if (!enclosure.guarded) {
    // Nobody else renews it, so it gets the ttl that is wanted here.
    HeldLease held(electorate, order.resource, enclosure.token, enclosure.fence, enclosure.hold);
    const ExtendResult extended = co_await held.extend(order.ttl);
    if (extended.decision != ExtendDecision::confirmed) co_return borrowing;
    deadline = redlock::deadline(extended.t0, order.ttl);
  }
  if (electorate.clock().now() + order.needed_validity >= deadline) {
    borrowing.too_short = enclosure.guarded;
    co_return borrowing;
  }
  const Tenure tenure = enclosure.guarded ? Tenure::borrowed : Tenure::adopted;
  borrowing.lease.emplace(
      Lease{order.resource, enclosure.token, enclosure.id, enclosure.fence, order.ttl, deadline, tenure, enclosure.hold});
  if (order.mode.seats > 0 && !enclosure.hold.shared) borrowing.lease->hold.seat = 0;
  co_return borrowing;
}

asio::awaitable<ExtendResult> look_at(Electorate& electorate, Resource resource, LeaseId id) {
  Look found = co_await look(electorate, std::move(resource), std::move(id));
  ExtendResult result;
  result.decision = found.decision;
  result.t0 = found.t0;
  result.faults = std::move(found.faults);
  if (found.decision == ExtendDecision::lost) result.not_ours = not_ours(std::move(found.other));
  co_return result;
}

BorrowedLease::BorrowedLease(Electorate& electorate, const Lease& lease)
    : electorate_(electorate),
      resource_(lease.resource),
      id_(lease.id),
      ttl_(lease.ttl),
      deadline_(lease.deadline),
      next_look_(look_after(electorate.clock().now())) {}

/// In time for its guard's next extension to show, whatever the ttl of each.
Instant BorrowedLease::look_after(Instant last) const {
  return last +
         std::clamp<Duration>((deadline_ - last) / 4, shortest_interval, std::max<Duration>(extend_interval(ttl_), shortest_interval));
}

asio::awaitable<std::variant<LeaseExtended, LeaseInTrouble, LeaseEnded>> BorrowedLease::next() {
  const Clock& clock = electorate_.clock();
  co_await sleep_until(clock, std::min(next_look_, deadline_));
  if (clock.now() >= deadline_) co_return LeaseEnded{LeaseState::expired, std::nullopt};
  Look found = co_await look(electorate_, resource_, id_);
  if (found.decision == ExtendDecision::lost) {
    LeaseEnded ended{LeaseState::lost, not_ours(std::move(found.other))};
    co_return ended;
  }
  if (clock.now() >= deadline_) co_return LeaseEnded{LeaseState::expired, std::nullopt};
  if (found.decision == ExtendDecision::confirmed) {
    deadline_ = std::max(deadline_, found.deadline);
    next_look_ = look_after(found.t0);
    co_return LeaseExtended{deadline_, std::exchange(failures_, 0) > 0};
  }
  next_look_ = clock.now() + unavailable_delay(failures_, electorate_.random());
  ++failures_;
  LeaseInTrouble trouble{std::move(found.faults), failures_ == 1};
  co_return trouble;
}

}  // namespace redlock
