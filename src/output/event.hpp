#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "child/stop_plan.hpp"
#include "core/decision.hpp"
#include "core/lease.hpp"
#include "core/types.hpp"
#include "core/validity.hpp"
#include "core/vote.hpp"
#include "engine/attempt.hpp"
#include "engine/server_set.hpp"
#include "output/outcome.hpp"

namespace redlock::output {

/// What happens to the locks of one command. All that tells of it while it happens (messages,
/// --events-fd, --sd-notify) listens to these events.
namespace event {

// --- The wait ---

/// An attempt failed, and the wait goes on.
struct Waiting {
  Resource resource;
  AttemptFailure failure;
  std::size_t servers;
  Duration waited;
  bool news;  ///< the holder, our position or the reason is another one than before
};

/// Another second of the wait has passed.
struct StillWaiting {};

/// The holder of the lock is a process that waits for us to end, and we were told to wait.
struct HeldAroundUs {
  Resource resource;
  Owner owner;
};

/// The wait is over, whatever came of it.
struct WaitEnded {};

/// A newer waiter took our place (--supersede): the wait is over.
struct Superseded {
  Resource resource;
  std::optional<Owner> by;  ///< nullopt: not known
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

// --- The lease ---

/// The job is paused: the lock was released before the command started, and is waited for again.
struct ReleasedWhilePaused {};

/// A quorum confirmed a renewal.
struct Renewed {
  bool after_trouble;  ///< rounds before this one failed
};

/// The first round of several that found no quorum; the lease still stands.
struct RenewalFailed {
  Resource resource;
  std::vector<ServerFault> faults;
};

/// Other servers than before give no vote; a quorum still does.
struct VotesChanged {
  std::vector<ServerFault> faults;  ///< empty: all vote again
  std::size_t servers;
};

/// The lease is lost, or cannot be renewed in time. Reported after the stop signal was sent.
struct Lost {
  std::optional<Resource> resource;  ///< nullopt: it could not be renewed
  std::string reason;                ///< one clause for people
};

// --- The command ---

/// To stop the command may take longer than the ttl leaves.
struct Strained {
  StopCost cost;
  Duration needed;
  Ttl ttl;
};

/// The stop signal was sent to what runs under the lock: because of the lease, at the end of
/// --max-hold or of the process that started us, or at the request of another process.
struct Stopping {
  child::StopReason why;
  std::optional<Duration> max_hold;
  std::optional<StopRequest> request{};  ///< for child::StopReason::request and replaced
};

/// These processes survive KILL; the lock is kept.
struct Unkillable {
  std::vector<pid_t> pids;
};

/// A signal ended the command, and the lock is kept until these processes have ended, too. Before
/// Ended, and only when it takes a while.
struct Awaiting {
  std::vector<pid_t> pids;
};

/// The command has ended; both empty: its status is not known.
struct Ended {
  std::optional<int> exit_code;
  std::optional<int> signal;
  Duration held;
  std::vector<pid_t> left;  ///< descendants that still run
};

/// The command has ended, and the lock is kept for runs within this one.
struct NestedRunsLive {
  std::vector<pid_t> holders;
};

// --- The end ---

/// We are done with the locks.
struct Released {
  bool confirmed;  ///< by a quorum
  bool inherited;  ///< there was nothing to release: the lease is of the run or acquire around this
                   ///< one
  Duration held;
  Duration expire_in;  ///< for which it was left to expire (--min-hold)
};

/// No quorum confirmed the release: it is repeated in the background.
struct ReleasePending {
  Ttl ttl;  ///< within which what is left expires
  std::vector<ServerFault> faults;
};

/// The command succeeded, and no quorum of servers has recorded that.
struct NotRecorded {
  Duration once_per;
};

/// Processes that the command left running.
struct LeftRunning {
  std::vector<pid_t> pids;
  bool killed;       ///< with the command's pid namespace
  bool expected;     ///< the user said what is to become of them
  bool unprotected;  ///< the lock was released all the same
};

/// How the command ends; again when the release shows that the lock was lost.
struct Concluded {
  Outcome outcome;
};

/// The end without the locks, the last event: the wait was given up or interrupted, the servers did
/// not answer, or the command could not be started. Not after Superseded and Fresh, which are such
/// ends, too.
struct NotAcquired {
  Outcome outcome;  ///< with the exit code
  Duration waited;
};

using Any = std::variant<Waiting, StillWaiting, HeldAroundUs, WaitEnded, Superseded, Fresh,
                         Acquired, ReleasedWhilePaused, Renewed, RenewalFailed, VotesChanged, Lost,
                         Strained, Stopping, Unkillable, Awaiting, Ended, NestedRunsLive, Released,
                         ReleasePending, NotRecorded, LeftRunning, Concluded, NotAcquired>;

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
