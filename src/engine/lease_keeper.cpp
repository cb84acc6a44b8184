#include "engine/lease_keeper.hpp"

#include <algorithm>
#include <utility>

#include "core/backoff.hpp"
#include "core/validity.hpp"
#include "engine/inherited_lease.hpp"

namespace redlock {
namespace {

/// How long after a round a disconnection may bring the next one: a server, or a proxy, that ends
/// every connection must not be asked without end.
constexpr Milliseconds disconnect_interval{1000};

/// The least time between two questions for an inherited lease that is about to end.
constexpr Milliseconds min_check_interval{50};

/// An inherited lease is asked for again when this part of what is left of it has passed.
constexpr int check_divisor = 4;

}  // namespace

LeaseKeeper::LeaseKeeper(ServerSet& server_set, const Lease& lease)
    : server_set_(server_set),
      resource_(lease.resource),
      id_(lease.id),
      ttl_(lease.ttl),
      life_(lease.deadline),
      last_round_(server_set.clock().now()) {
  if (lease.keeping == Keeping::inherited) {
    disconnected_ = server_set.clock().make_event();  // the process that keeps it cares for that
    next_round_ = round_after(last_round_);
  } else {
    held_.emplace(server_set, lease.resource, lease.token, lease.fence, lease.hold, lease.ttl);
    disconnected_ = server_set.disconnection_event();
    // After the t0 of the grant: deadline() solved for it.
    next_round_ = round_after(lease.deadline - (redlock::deadline(Instant(), ttl_) - Instant()));
  }
}

/// When the next round is due after one that began at `t0`.
Instant LeaseKeeper::round_after(Instant t0) const {
  const Duration interval = extend_interval(ttl_);
  if (held_) return t0 + interval;
  // In time to see the next extension by its keeper, whatever the ttl of each.
  return t0 + std::clamp<Duration>((deadline() - t0) / check_divisor, min_check_interval,
                                   std::max<Duration>(interval, min_check_interval));
}

asio::awaitable<void> LeaseKeeper::wait() {
  const Clock& clock = server_set_.clock();
  Instant due = std::min(next_round_, deadline());
  while (clock.now() < due) {
    const bool disconnected = co_await disconnected_->wait_until(due);
    if (disconnected) due = std::min(due, std::max(clock.now(), last_round_ + disconnect_interval));
  }
}

asio::awaitable<ExtendResult> LeaseKeeper::ask() {
  return held_ ? held_->extend(ttl_, deadline()) : check_lease(server_set_, resource_, id_);
}

asio::awaitable<std::variant<LeaseExtended, LeaseInTrouble, LeaseEnded>> LeaseKeeper::next() {
  const Clock& clock = server_set_.clock();
  co_await wait();
  if (life_.state(clock.now()) != LeaseState::held)
    co_return LeaseEnded{LeaseState::expired, std::nullopt};

  last_round_ = clock.now();
  ExtendResult round = co_await ask();
  if (round.decision == ExtendDecision::lost) {
    life_.lose();
    co_return LeaseEnded{LeaseState::lost, round.not_ours};
  }
  // Read the clock before confirming: an answer after the deadline does not restore the lease.
  if (life_.state(clock.now()) != LeaseState::held)
    co_return LeaseEnded{LeaseState::expired, std::nullopt};
  if (round.decision == ExtendDecision::confirmed) {
    life_.confirm(round.t0, round.deadline);
    next_round_ = round_after(round.t0);
    co_return LeaseExtended{deadline(), std::exchange(failures_, 0) > 0};
  }
  next_round_ = clock.now() + unavailable_delay(failures_, server_set_.random());
  ++failures_;
  co_return LeaseInTrouble{std::move(round.faults), failures_ == 1};
}

}  // namespace redlock
