#include "engine/lease_keeper.hpp"

#include <algorithm>

#include "core/backoff.hpp"
#include "core/validity.hpp"

namespace redlock {

LeaseKeeper::LeaseKeeper(ServerSet& server_set, HeldLease& held, const Lease& lease)
    : server_set_(server_set),
      held_(held),
      ttl_(lease.ttl),
      // The t0 of the grant: deadline() solved for it.
      life_(lease.ttl, lease.deadline - (redlock::deadline(Instant(), lease.ttl) - Instant())),
      next_round_(life_.next_extend()) {}

asio::awaitable<std::variant<LeaseExtended, LeaseInTrouble, LeaseEnded>> LeaseKeeper::next() {
  const Clock& clock = server_set_.clock();
  co_await sleep_until(clock, std::min(next_round_, life_.deadline()));
  if (life_.state(clock.now()) != LeaseState::held)
    co_return LeaseEnded{LeaseState::expired, std::nullopt};

  ExtendResult round = co_await held_.extend(ttl_, life_.deadline());
  if (round.decision == ExtendDecision::lost) {
    life_.lose();
    co_return LeaseEnded{LeaseState::lost, round.not_ours};
  }
  // Read the clock before confirming: an answer after the deadline does not restore the lease.
  if (life_.state(clock.now()) != LeaseState::held)
    co_return LeaseEnded{LeaseState::expired, std::nullopt};
  if (round.decision == ExtendDecision::confirmed) {
    life_.confirm(round.t0, ttl_);
    next_round_ = life_.next_extend();
    co_return LeaseExtended{life_.deadline(), std::exchange(failures_, 0) > 0};
  }
  next_round_ = clock.now() + unavailable_delay(failures_, server_set_.random());
  ++failures_;
  co_return LeaseInTrouble{std::move(round.faults), failures_ == 1};
}

}  // namespace redlock
