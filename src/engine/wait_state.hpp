#pragma once

#include <optional>
#include <variant>

#include "core/queue.hpp"
#include "engine/attempt.hpp"
#include "engine/server_set.hpp"

namespace redlock {

struct WaitPolicy {
  std::optional<Duration> wait;  ///< for a lock that is held; none: forever; zero: try once
  Duration unavailable_wait{};   ///< how long to tolerate that no quorum answers; not at all when
                                 ///< `wait` is zero
  Duration retry_delay{};        ///< between polls of a lock that is held
};

/// The state of a waiter between two attempts. A value: `after_failure` makes the next state from
/// it, and the Waiter carries out the change.
///
///     outside --a quorum answers--> joining --subscribed--> queued --two outages in a row--> left
///                                      ^                                                      |
///                                      '------------------- a quorum answers -----------------'
///
/// One that has just joined again leaves after one outage, as if it had never joined.
struct WaitState {
  enum class Queue {
    outside,  ///< no ticket yet: an attempt gets no lock that others wait for
    joining,  ///< has a ticket; subscribes, and the next attempt queues it
    queued,   ///< its attempts carry the queue entry
    left,     ///< keeps the ticket, and waits for a quorum of answers before it joins again (Q6)
  };

  /// The lock is held.
  struct Held {
    friend bool operator==(const Held&, const Held&) = default;
  };

  /// Simultaneous attempts split the votes (R8).
  struct Split {
    Instant since;    ///< the first of an unbroken run
    unsigned rounds;  ///< in that run
    friend bool operator==(const Split&, const Split&) = default;
  };

  /// No quorum of answers, or none yet to the attempt that joins the queue.
  struct Outage {
    Instant since;    ///< the first of an unbroken run
    unsigned rounds;  ///< in that run
    friend bool operator==(const Outage&, const Outage&) = default;
  };

  /// Only the restart guard is in the way (R7).
  struct Guarded {
    friend bool operator==(const Guarded&, const Guarded&) = default;
  };

  using Obstacle = std::variant<Held, Split, Outage, Guarded>;

  Queue queue = Queue::outside;
  Obstacle obstacle = Held{};
  std::optional<Instant> contended_since{};  ///< Room::contended, in an unbroken run
  friend bool operator==(const WaitState&, const WaitState&) = default;
};

/// What is known when an attempt has failed, besides the failure.
struct WaitContext {
  Instant now;
  Instant give_up_at;            ///< the wait's end, or Instant::max()
  bool may_be_notified = false;  ///< subscribed at a quorum of servers
  Duration server_timeout{};
};

struct WaitStep {
  WaitState state;
  std::optional<Instant> try_at;  ///< when to try again; none: give up
  AcquireDecision why;            ///< the reason to report: a split that never resolved is busy
};

/// What to do after a failed attempt. Pure, except for the random bits that it draws.
WaitStep after_failure(const WaitState& state, const AttemptFailure& failure,
                       const WaitPolicy& policy, const WaitContext& context,
                       const RandomBits& random);

}  // namespace redlock
