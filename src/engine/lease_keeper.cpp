#include "engine/lease_keeper.hpp"

#include <algorithm>

#include "core/backoff.hpp"
#include "core/validity.hpp"

namespace redlock {
namespace {

/// How long after a round a disconnection may bring the next one: a server, or a proxy, that ends
/// every connection must not be asked without end.
constexpr Milliseconds disconnect_interval{1000};

}  // namespace

LeaseKeeper::LeaseKeeper(ServerSet& server_set, HeldLease& held, const Lease& lease)
    : server_set_(server_set),
      held_(held),
      ttl_(lease.ttl),
      // The t0 of the grant: deadline() solved for it.
      life_(lease.ttl, lease.deadline - (redlock::deadline(Instant(), lease.ttl) - Instant())),
      disconnected_(server_set.disconnection_event()),
      next_round_(life_.next_extend()),
      last_round_(server_set.clock().now()) {}

asio::awaitable<void> LeaseKeeper::wait() {
  const Clock& clock = server_set_.clock();
  Instant due = std::min(next_round_, life_.deadline());
  while (clock.now() < due) {
    const bool disconnected = co_await disconnected_->wait_until(due);
    if (disconnected) due = std::min(due, std::max(clock.now(), last_round_ + disconnect_interval));
  }
}

asio::awaitable<std::variant<LeaseExtended, LeaseInTrouble, LeaseEnded>> LeaseKeeper::next() {
  const Clock& clock = server_set_.clock();
  co_await wait();
  if (life_.state(clock.now()) != LeaseState::held)
    co_return LeaseEnded{LeaseState::expired, std::nullopt};

  last_round_ = clock.now();
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
