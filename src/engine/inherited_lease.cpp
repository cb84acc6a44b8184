#include "engine/inherited_lease.hpp"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <functional>
#include <memory>
#include <numeric>

#include "core/validity.hpp"
#include "engine/round.hpp"
#include "store/owner_record.hpp"

namespace redlock {
namespace {

/// The result of one question.
struct LeaseCheck {
  ExtendResult round;         ///< confirmed: the lease is valid
  bool unsupervised = false;  ///< if confirmed: a quorum reports that no `run` keeps the lease
};

/// The votes of a round that checks a lease.
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
    std::size_t missing = 0;
    const std::vector<InspectVote> votes = this->votes();
    for (std::size_t i = 0; i < votes.size(); ++i) {
      if (!votes_.has(i)) {
        ++missing;
      } else if (holder(votes[i]) != nullptr) {
        ++standing;
      } else if (!std::holds_alternative<Fault>(votes[i])) {
        ++gone;
      }
    }
    return decide_extension(standing, gone, missing, votes.size());
  }

  /// A missing vote counts as a fault.
  [[nodiscard]] std::vector<InspectVote> votes() const {
    return without_duplicates(votes_.votes());
  }

  [[nodiscard]] bool has(std::size_t server) const { return votes_.has(server); }

 private:
  VoteList<InspectVote> votes_;
  LeaseId id_;
};

/// Until when a holder may rely on the end that a server shows. Where its clock was set back, the
/// keeper's next extension brings that nearer, but never to less than the keeper's ttl (R4).
Duration reliable_rest(const Holder& holder) {
  const auto renewed_for = holder.owner ? holder.owner->renewed_for : std::nullopt;
  const bool is_renewed = renewed_for && *renewed_for > Duration::zero();
  return is_renewed ? std::min(*holder.remaining, *renewed_for) : *holder.remaining;
}

NotOurs not_ours(std::optional<Holder> other) {
  const NotOurs::Why why = other ? NotOurs::Why::held : NotOurs::Why::gone;
  return {why, std::move(other)};
}

asio::awaitable<LeaseCheck> check(ServerSet& server_set, Resource resource, LeaseId id,
                                  Instant end) {
  const auto ballot = std::make_shared<Ballot<LeaseCheckTally>>(server_set, id);
  LeaseCheck found;
  ExtendResult& round = found.round;
  round.t0 = server_set.clock().now();
  const Instant answer_by = std::min(end, round.t0 + server_set.server_timeout());
  for (std::size_t i = 0; i < server_set.size(); ++i) {
    ask(server_set, ballot, i, [resource, id, answer_by](LockServer& server) {
      return server.inspect(resource, id, answer_by);
    });
  }
  bool in_time = true;
  while (in_time && ballot->tally.decision() == ExtendDecision::undecided)
    in_time = co_await ballot->event->wait_until(end);

  round.decision = ballot->tally.decision();
  if (round.decision == ExtendDecision::undecided) round.decision = ExtendDecision::too_few_answers;
  const std::vector<InspectVote> votes = ballot->tally.votes();
  round.faults = faults_among(server_set, [&](std::size_t i) {
    return ballot->tally.has(i) || !in_time ? &votes[i] : nullptr;
  });
  std::vector<Duration> remaining;
  std::optional<Holder> other;
  // A server may have lost the owner record but not the lease.
  std::size_t supervising = 0;
  std::size_t unsupervised = 0;
  for (const InspectVote& vote : votes) {
    const auto* taken = std::get_if<Taken>(&vote);
    if (const Holder* holder = ballot->tally.holder(vote)) {
      if (holder->owner) ++(holder->owner->supervised ? supervising : unsupervised);
      if (holder->remaining) remaining.push_back(reliable_rest(*holder));
    } else if (taken != nullptr && !other) {
      other = taken->holder;
    }
  }
  if (round.decision == ExtendDecision::lost) round.not_ours = not_ours(std::move(other));
  if (round.decision != ExtendDecision::confirmed) co_return found;
  // A lease without an expiry shows no end. Another client removed the expiry, and the keeper's
  // next extend will set one.
  if (remaining.size() < quorum_of(votes.size())) {
    round.decision = ExtendDecision::too_few_answers;
    co_return found;
  }
  found.unsupervised = supervising == 0 && unsupervised >= quorum_of(votes.size());
  std::ranges::sort(remaining, std::greater<>());
  const auto ttl = Ttl::from(remaining[quorum_of(votes.size()) - 1]);
  round.deadline = ttl ? deadline(round.t0, *ttl) : round.t0;
  co_return found;
}

/// Whether a lease with this hold suffices for this mode. An exclusive holder has every slot.
bool is_enough(const Hold& hold, const Mode& mode) {
  if (!hold.shared) return true;
  if (!mode.shared) return false;
  if (mode.slots == 0) return true;
  const auto is_wanted = [&mode](const std::string& slot) {
    return std::ranges::find(mode.only, slot) != mode.only.end();
  };
  const auto is_in_pool = [&](std::size_t slot) {
    return mode.only.empty() ? slot < mode.slots : is_wanted(std::to_string(slot));
  };
  return hold.slots.size() + hold.slot_names.size() >= mode.take &&
         std::ranges::all_of(hold.slots, is_in_pool) &&
         std::ranges::all_of(hold.slot_names, is_wanted);
}

Inheritance unanswered(std::vector<ServerFault> faults) {
  Inheritance inheritance;
  inheritance.unanswered = true;
  inheritance.faults = std::move(faults);
  return inheritance;
}

/// Whether a lease that was confirmed is one that we may work under.
bool is_for_us(const LeaseCheck& found, const ParentClaim& parent_claim) {
  return found.round.decision == ExtendDecision::confirmed &&
         (found.unsupervised || (parent_claim.guard_lives && parent_claim.guard_lives()));
}

/// Who renews the lease works under it, and so is its user. `acquire` only hands it on.
std::optional<LeaseUser> user_of(const ServerSet& server_set, const Owner& owner) {
  if (owner.renewed_for.value_or(Duration::zero()) == Duration::zero()) return std::nullopt;
  std::array<char, 2 * sizeof(std::uint64_t) + 1> id{};
  std::snprintf(id.data(), id.size(), "%016" PRIx64, server_set.random());
  return LeaseUser{id.data(), encode_owner(owner)};
}

/// The lease of the claim, until `deadline`.
Lease lease_of(const AcquireOrder& order, const ParentClaim& claim, Instant deadline) {
  Lease lease{order.resource, claim.token, claim.id,           claim.fence,
              order.ttl,      deadline,    Keeping::inherited, claim.hold};
  if (order.mode.slots > 0 && !claim.hold.shared) {
    Slots first(order.mode.take);
    std::iota(first.begin(), first.end(), std::size_t{0});
    lease.hold = hold_in(order.mode, first);
    lease.hold.shared = false;
  }
  return lease;
}

/// Extends the lease, as this user if there is one. `until`: its end as it is, if known.
asio::awaitable<Inheritance> use(ServerSet& server_set, const AcquireOrder& order,
                                 std::optional<LeaseUser> user, Instant until) {
  const ParentClaim claim = *order.parent_claim;
  // The lease gets the ttl of the order, as its keeper may not renew it.
  HeldLease held(server_set, order.resource, claim.token, claim.fence, claim.hold, order.ttl);
  if (user) held.use_as(*user, until, /*below_guard=*/claim.guard_lives != nullptr);
  const auto asked = std::make_shared<std::optional<StopRequest>>();
  held.on_stop_request([asked](const StopRequest& request) { *asked = request; });
  ExtendResult extended = co_await held.extend(order.ttl);
  const bool is_confirmed = extended.decision == ExtendDecision::confirmed;
  const bool is_late = server_set.clock().now() + order.needed_validity >= extended.deadline;
  if (!is_confirmed || is_late) {
    if (user) (void)co_await held.release(/*by_hand=*/false);
    if (extended.decision != ExtendDecision::lost) co_return unanswered(std::move(extended.faults));
    Inheritance lost;
    lost.lost = true;
    co_return lost;
  }
  held.end_healing();  // the next rounds heal, and end with the lease

  Inheritance inheritance;
  inheritance.lease = lease_of(order, claim, extended.deadline);
  inheritance.lease->keeping = Keeping::used;
  inheritance.lease->user = std::move(user);
  inheritance.lease->place = held.place_of_keeper();
  inheritance.lease->stop_request = *asked;
  inheritance.lease->guard_lives = claim.guard_lives;
  co_return inheritance;
}

}  // namespace

asio::awaitable<Inheritance> inherit(ServerSet& server_set, AcquireOrder order) {
  ParentClaim& claim = *order.parent_claim;
  // The guard may have ended since the last attempt.
  if (claim.guard_lives && !claim.guard_lives()) claim.guard_lives = nullptr;
  std::optional<LeaseUser> user = user_of(server_set, order.owner);
  const bool fits = is_enough(claim.hold, order.mode);
  // Below a guard, the registration itself finds out whether the lease is valid.
  if (claim.guard_lives && user && fits)
    co_return co_await use(server_set, order, std::move(user), Instant());

  LeaseCheck found = co_await check(server_set, order.resource, claim.id, Instant::max());
  if (found.round.decision == ExtendDecision::too_few_answers)
    co_return unanswered(std::move(found.round.faults));
  Inheritance inheritance;
  inheritance.lost = found.round.decision == ExtendDecision::lost;
  if (!is_for_us(found, claim)) co_return inheritance;
  inheritance.too_weak = !fits;
  if (!fits) co_return inheritance;
  if (!claim.guard_lives)
    co_return co_await use(server_set, order, std::move(user), found.round.deadline);
  if (server_set.clock().now() + order.needed_validity >= found.round.deadline)
    co_return unanswered({});
  inheritance.lease = lease_of(order, claim, found.round.deadline);
  co_return inheritance;
}

asio::awaitable<bool> has_parent_lease(ServerSet& server_set, const AcquireOrder& order) {
  const ParentClaim claim = *order.parent_claim;
  const LeaseCheck found = co_await check(server_set, order.resource, claim.id, Instant::max());
  co_return is_for_us(found, claim) && is_enough(claim.hold, order.mode);
}

asio::awaitable<ExtendResult> check_lease(ServerSet& server_set, Resource resource, LeaseId id,
                                          Instant end) {
  LeaseCheck found = co_await check(server_set, std::move(resource), std::move(id), end);
  co_return std::move(found.round);
}

}  // namespace redlock
