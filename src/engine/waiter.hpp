#pragma once

#include <asio/awaitable.hpp>
#include <optional>
#include <variant>

#include "engine/attempt.hpp"

namespace redlock {

struct WaitPolicy {
  std::optional<Duration> wait;  ///< how long to wait for a lock that is held; nothing: for ever; zero: try once
  Duration unavailable_wait{};   ///< how long to bear that there is no quorum of answers; not at all when `wait` is zero
  Duration retry_delay{};        ///< between looks at a lock that is held
};

/// One attempt failed; next() will try again.
struct StillWaiting {
  AttemptFailure failure;
};

/// The wait is over without a lock. `why` says which exit code fits; a split that never resolved comes as busy.
struct GaveUp {
  AttemptFailure failure;
};

/// Acquires, with as many attempts as the policy allows, and tells after each how it went:
///
///     Waiter waiter(…);
///     for (;;) { step = co_await waiter.next(); if it is a Lease or GaveUp: done; StillWaiting: show it }
///
/// For a lock that is held it waits in line: first in, first out, called by whoever makes room (PROTOCOL Q). It looks by itself, too, when
/// a lease ends or a call may have been lost; and where a foreign client holds the lock, which calls nobody, the first in line looks after
/// each jittered retry delay. Votes that were split by simultaneous attempts are tried again for up to a second even when the wait is zero
/// (R8); an outage is borne for `unavailable_wait`; servers that restarted lately are waited for as a lock that is held (R7).
class Waiter {
 public:
  Waiter(Electorate& electorate, AcquireOrder order, WaitPolicy policy, Interrupt& interrupt);

  /// One that ends without a lease leaves the line.
  asio::awaitable<std::variant<Lease, StillWaiting, GaveUp>> next();

 private:
  asio::awaitable<void> rest();

  /// When to try again, or nothing to give up.
  std::optional<Instant> next_try(AttemptFailure& failure);
  std::optional<Instant> after_split(const AttemptFailure& failure, Instant now);
  std::optional<Instant> after_outage(Instant now);
  std::optional<Instant> after_guard(const AttemptFailure& failure, Instant now) const;
  std::optional<Instant> after_busy(const AttemptFailure& failure, Instant now);

  Electorate& electorate_;
  AcquireOrder order_;
  WaitPolicy policy_;
  Interrupt& interrupt_;
  Instant give_up_at_;
  std::optional<Place> place_;          ///< in line
  unsigned looks_ = 0;                  ///< from the place
  bool listens_ = false;                ///< at the place
  bool in_place_ = false;               ///< look from there; not before we listen, and not while a quorum stays silent
  bool held_back_ = false;              ///< by the restart guard, and by nothing else
  std::optional<std::size_t> seat_;     ///< the one to ask for
  Duration round_trip_{};               ///< of the last attempt
  unsigned calls_of_some_ = 0;          ///< in a row that were no quorum's
  std::optional<Instant> try_at_;       ///< empty before the first attempt
  std::optional<Instant> split_since_;  ///< of an unbroken run of split votes
  std::optional<Instant> outage_since_;
  unsigned splits_ = 0;
  unsigned outages_ = 0;  ///< in a row
};

}  // namespace redlock
