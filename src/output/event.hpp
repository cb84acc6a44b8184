#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "child/stop_plan.hpp"
#include "core/decision.hpp"
#include "core/lease.hpp"
#include "core/types.hpp"
#include "core/vote.hpp"
#include "engine/server_set.hpp"
#include "output/outcome.hpp"

namespace redlock::output {

/// What happens to the locks of one command, in this order. All that tells of it while it happens
/// (messages, --events-fd, --sd-notify) listens to the same events.
namespace event {

/// An attempt failed, the wait goes on, and something is new: the holder, our position, or why.
struct Waiting {
  Resource resource;
  std::optional<Holder> holder;
  std::optional<std::size_t> position;  ///< in the queue, from 1 on; nothing: not queued
  std::vector<ServerFault> faults;
  std::string obstacle;  ///< one clause for people
  Duration waited;
};

/// The user was shown that we wait. For messages alone.
struct WaitShown {};

/// A newer waiter took our place (--supersede): the wait is over.
struct Superseded {
  Resource resource;
  std::optional<Owner> by;  ///< nothing: not known
  Duration waited;
};

/// The end without the locks: the wait was given up or interrupted, the servers did not answer, or
/// the command could not be started. Not after Superseded and Fresh, which are such ends, too.
struct NotAcquired {
  Outcome outcome;  ///< of the command, with its exit code
  Duration waited;
};

/// A run succeeded within --once-per: the command does not run, and nothing else happens.
struct Fresh {
  PastRun last;
  Duration waited;
};

/// All locks are granted.
struct Acquired {
  std::vector<Lease> leases;
  Duration waited;
  std::size_t votes;  ///< servers that gave theirs so far
  std::size_t servers;
  std::vector<ServerFault> faults;
};

/// The first round of several that found no quorum; the lease still stands.
struct RenewalFailed {
  Resource resource;
  std::vector<ServerFault> faults;
};

struct RenewedAgain {};

/// The lease is lost, or cannot be renewed in time. Reported after the stop signal was sent.
struct Lost {
  std::optional<Resource> resource;  ///< nothing: it could not be renewed
  std::string reason;                ///< one clause for people
};

/// The stop signal was sent to what runs under the lock.
struct Stopping {
  child::StopReason why;
};

/// A signal ended the command, and the lock is kept until these processes have ended, too. Before
/// Ended, and only when it takes a while.
struct Awaiting {
  std::vector<long> pids;
};

/// The command has ended; both empty: its status is not known.
struct Ended {
  std::optional<int> exit_code;
  std::optional<int> signal;
  Duration held;
  std::vector<long> left;  ///< descendants that still run
};

/// We are done with the locks.
struct Released {
  bool confirmed;  ///< by a quorum
  bool inherited;  ///< there was nothing to release: the lease is of the run or acquire around this
                   ///< one
  Duration held;
  Duration expire_in;  ///< for which it was left to expire (--min-hold)
};

using Any = std::variant<Waiting, WaitShown, Superseded, NotAcquired, Fresh, Acquired,
                         RenewalFailed, RenewedAgain, Lost, Stopping, Awaiting, Ended, Released>;

}  // namespace event

class EventListener {
 public:
  virtual ~EventListener() = default;

  /// `at`: the wall clock, for display. Must not block.
  virtual void on(const event::Any& event, Milliseconds at) = 0;
};

/// The events of one command on their way to all who listen.
class Events {
 public:
  /// `listener` must outlive the events.
  void add(EventListener& listener) { listeners_.push_back(&listener); }

  void report(const event::Any& event) const {
    const Milliseconds at = wall_clock_now();
    for (EventListener* listener : listeners_) listener->on(event, at);
  }

 private:
  std::vector<EventListener*> listeners_;
};

}  // namespace redlock::output
