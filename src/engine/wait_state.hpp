#pragma once

#include <optional>
#include <variant>

#include "core/backoff.hpp"
#include "core/queue.hpp"
#include "engine/attempt.hpp"
#include "engine/server_set.hpp"

namespace redlock {

struct WaitPolicy {
  std::optional<Duration> wait;  ///< how long to wait for a lock that is held; nullopt: forever;
                                 ///< zero: try once
  Duration unavailable_wait{};   ///< how long to tolerate that no quorum answers; not at all if
                                 ///< `wait` is zero
  Duration retry_delay{};        ///< between polls of a lock that is held
  bool password_may_change = false;  ///< a login that is refused after others were accepted is
                                     ///< tolerated for `unavailable_wait`, too: the new password
                                     ///< may be on its way

  /// The policy for the rest of a wait that has lasted for so long.
  [[nodiscard]] WaitPolicy after(Duration waited) const;
};

/// The state of a waiter between two attempts. A value: `after_failure` derives the next state from
/// it, and the Waiter carries out the change.
///
///     not_joined --a quorum answers--> joining --subscribed--> queued --two outages--> away
///                                         ^                                             |
///                                         '-------------- a quorum answers -------------'
///
/// A waiter whose first attempt after rejoining meets an outage leaves at once.
struct WaitState {
  enum class Queue {
    not_joined,  ///< no ticket yet: an attempt gets no lock that others wait for
    joining,     ///< has a ticket and subscribes; the next attempt queues it
    queued,      ///< its attempts carry the queue entry
    away,        ///< has left, but keeps the ticket; it rejoins once a quorum answers (Q6)
  };

  /// Another lease holds the lock.
  struct Held {
    friend bool operator==(const Held&, const Held&) = default;
  };

  /// Simultaneous attempts split the votes.
  using Split = SplitSeries;

  /// No quorum answered, or none has answered the attempt that joins the queue yet.
  struct Outage {
    Instant since;    ///< the first such round in an unbroken series
    unsigned rounds;  ///< in that series
    friend bool operator==(const Outage&, const Outage&) = default;
  };

  /// A quorum granted the lock, but the restart guard does not count all of its grants (R7).
  struct Guarded {
    friend bool operator==(const Guarded&, const Guarded&) = default;
  };

  using Obstacle = std::variant<Held, Split, Outage, Guarded>;

  Queue queue = Queue::not_joined;
  Obstacle obstacle = Held{};
  std::optional<Instant> contended_since{};  ///< the first Room::contended in an unbroken series
  friend bool operator==(const WaitState&, const WaitState&) = default;
};

/// What after_failure() needs to know besides the state and the failure.
struct WaitContext {
  Instant now;
  Instant give_up_at;            ///< the end of the wait, or Instant::max()
  bool may_be_notified = false;  ///< subscribed at a quorum of servers
  Duration server_timeout{};
};

struct WaitStep {
  WaitState state;
  std::optional<Instant> try_at;  ///< when to retry; nullopt: give up
  AcquireDecision why;            ///< the reason to report; a split that never resolved is `busy`
};

/// Decides what to do after a failed attempt. Pure, except for the random bits that it draws.
WaitStep after_failure(const WaitState& state, const AttemptFailure& failure,
                       const WaitPolicy& policy, const WaitContext& context,
                       const RandomBits& random);

}  // namespace redlock
