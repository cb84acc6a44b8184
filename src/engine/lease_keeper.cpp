#include "engine/lease_keeper.hpp"

#include <algorithm>
#include <utility>

#include "core/backoff.hpp"
#include "core/validity.hpp"
#include "engine/inherited_lease.hpp"

namespace redlock {
namespace {

/// The minimum time between two rounds that disconnections cause: a server or a proxy that ends
/// every connection must not be asked in a tight loop.
constexpr Milliseconds disconnect_interval{1000};

/// The minimum time between two checks of an inherited lease that is about to end.
constexpr Milliseconds min_check_interval{50};

/// An inherited lease is checked again when this fraction of its remaining time has passed.
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
    wake_ = server_set.clock().make_event();  // never notified: its keeper does that
    next_round_ = round_after(last_round_);
  } else {
    held_.emplace(server_set, lease);
    wake_ = server_set.disconnection_event();
    held_->on_late_answer([wake = wake_] { wake->notify(); });
    // Relative to the t0 of the grant, which follows from the deadline. A user's lease may end
    // later than that (U2), and was extended just now.
    const Duration validity = redlock::deadline(Instant(), ttl_) - Instant();
    next_round_ = round_after(lease.user ? last_round_ : lease.deadline - validity);
  }
}

/// When the next round is due after one that began at `t0`.
Instant LeaseKeeper::round_after(Instant t0) const {
  const Duration interval = extend_interval(ttl_);
  if (held_) return t0 + interval;
  // In time to see the keeper's next extension, even if the keeper uses another ttl.
  return t0 + std::clamp<Duration>((deadline() - t0) / check_divisor, min_check_interval,
                                   std::max<Duration>(interval, min_check_interval));
}

asio::awaitable<void> LeaseKeeper::wait() {
  const Clock& clock = server_set_.clock();
  Instant due = std::min(next_round_, deadline());
  while (clock.now() < due && !late_deadline()) {
    const bool disconnected = co_await wake_->wait_until(due);
    if (disconnected) due = std::min(due, std::max(clock.now(), last_round_ + disconnect_interval));
  }
}

std::optional<Instant> LeaseKeeper::late_deadline() const {
  const auto claimed = held_ ? held_->claimed_until() : std::nullopt;
  return claimed > deadline() ? claimed : std::nullopt;
}

LeaseExtended LeaseKeeper::extended(Instant until, bool after_trouble) {
  life_.confirm(server_set_.clock().now(), until);
  return {deadline(), after_trouble};
}

asio::awaitable<ExtendResult> LeaseKeeper::ask() {
  return held_ ? held_->keep(ttl_, deadline())
               : check_lease(server_set_, resource_, id_, deadline());
}

asio::awaitable<std::variant<LeaseExtended, LeaseInTrouble, LeaseEnded>> LeaseKeeper::next() {
  const Clock& clock = server_set_.clock();
  co_await wait();
  if (life_.state(clock.now()) != LeaseState::held)
    co_return LeaseEnded{LeaseState::expired, std::nullopt};

  if (const auto until = late_deadline()) co_return extended(*until, false);

  last_round_ = clock.now();
  ExtendResult round = co_await ask();
  // A late answer came before the decision. The next call goes on with the round.
  if (const auto until = late_deadline(); until && round.decision == ExtendDecision::undecided)
    co_return extended(*until, false);
  if (round.decision == ExtendDecision::lost) {
    life_.lose();
    co_return LeaseEnded{LeaseState::lost, round.not_ours};
  }
  // Read the clock first: an answer that comes after the deadline does not restore the lease.
  if (life_.state(clock.now()) != LeaseState::held)
    co_return LeaseEnded{LeaseState::expired, std::nullopt};
  if (round.decision == ExtendDecision::confirmed) {
    next_round_ = round_after(round.t0);
    co_return extended(round.deadline, std::exchange(failures_, 0) > 0);
  }
  next_round_ = clock.now() + unavailable_delay(failures_, server_set_.random());
  ++failures_;
  // The trouble goes on until a quorum answers in time.
  if (const auto until = late_deadline()) co_return extended(*until, false);
  co_return LeaseInTrouble{std::move(round.faults), failures_ == 1};
}

}  // namespace redlock
