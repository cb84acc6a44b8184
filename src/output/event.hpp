#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/decision.hpp"
#include "core/lease.hpp"
#include "core/stop_plan.hpp"
#include "core/types.hpp"
#include "core/validity.hpp"
#include "core/vote.hpp"
#include "engine/attempt.hpp"
#include "engine/server_set.hpp"
#include "output/outcome.hpp"

namespace redlock::output {

/// The events in the life of one command's locks. Everything that reports them as they happen
/// (messages, --events-fd, --sd-notify) is a listener of these events.
namespace event {

// --- The wait ---

/// An attempt failed, and the wait continues.
struct Waiting {
  Resource resource;
  AttemptFailure failure;
  std::size_t servers;
  Duration waited;
  unsigned priority;  ///< --priority
  bool replaces;      ///< --replace: an older holder with that option is asked to stop
  bool news;          ///< the holder, our position or the reason has changed since the last event
};

/// Another second of the wait has passed.
struct StillWaiting {};

/// The holder of the lock is an ancestor that waits for this process to end, and -w asks us to
/// wait.
struct HeldAroundUs {
  Resource resource;
  Owner owner;
};

/// The wait has ended, with or without the lock.
struct WaitEnded {};

/// A newer waiter superseded this one (--supersede), which ends the wait. The last event in JSON.
struct Superseded {
  Resource resource;
  std::optional<Owner> by;  ///< nullopt: unknown
  Duration waited;
};

/// Another run succeeded within --once-per, so the command does not run. The last event in JSON.
struct Fresh {
  PastRun last;
  Duration waited;
};

/// All locks are granted.
struct Acquired {
  std::vector<Lease> leases;
  Duration waited;
  std::size_t votes;  ///< votes received so far
  std::size_t servers;
  std::vector<ServerFault> faults;
};

// --- The lease ---

/// The shell job was suspended while waiting, so the lock was released before the command started;
/// the wait starts again when the job continues.
struct ReleasedWhilePaused {};

/// A quorum confirmed a renewal.
struct Renewed {
  bool after_trouble;  ///< the previous rounds failed
};

/// A renewal found no quorum; the lease is still valid. Only for the first of several failed
/// rounds.
struct RenewalFailed {
  Resource resource;
  std::vector<ServerFault> faults;
};

/// The set of servers that do not vote has changed; a quorum still votes.
struct VotesChanged {
  std::vector<ServerFault> faults;  ///< of those that do not vote; empty: all vote again
  std::size_t servers;
};

/// The lease is lost, or cannot be renewed in time. Reported after the stop signal has been sent.
struct Lost {
  std::optional<Resource> resource;  ///< nullopt: it could not be renewed
  std::string reason;                ///< one clause for people
};

// --- The command ---

/// Stopping the command may take longer than the ttl allows.
struct Strained {
  StopCost cost;
  Duration needed;
  Ttl ttl;
};

/// The stop signal was sent to the processes that run under the lock. `why` is the reason: the
/// lease, --max-hold, the end of the process that started us, or a request of another process.
struct Stopping {
  StopReason why;
  std::optional<Duration> max_hold;
  std::optional<StopRequest> request{};  ///< for StopReason::request and replaced
};

/// The process of --while-pid is about to be stopped, or to run on without the lock. Precedes the
/// stop signal, because the user of the process must learn why it dies.
struct ScriptStopping {
  pid_t pid;
  Stopping stopping;
  std::optional<Lost> lost;  ///< if that is why
  OnLost on_lost;            ///< what happens then
};

/// Not all processes of --while-pid were dead when the lease ended.
struct ScriptUnsafe {
  pid_t pid;
  std::vector<pid_t> left;  ///< those that could not be killed
  Duration late;            ///< after the end of the lease
};

/// These processes survive SIGKILL, so the lock is kept.
struct Unkillable {
  std::vector<pid_t> pids;
};

/// A signal ended the command, and the lock is kept until these processes have also ended. Precedes
/// Ended, and is reported only if that takes a while.
struct Awaiting {
  std::vector<pid_t> pids;
};

/// The command has ended. Its status is unknown if `exit_code` and `signal` are both nullopt.
struct Ended {
  std::optional<int> exit_code;
  std::optional<int> signal;
  Duration held;
  std::vector<pid_t> left;  ///< descendants that are still running
};

// --- The end ---

/// The locks were released, or this process has nothing to release.
struct Released {
  bool confirmed;  ///< by a quorum
  bool inherited;  ///< the parent lease belongs to an enclosing run or acquire: nothing to release
  bool left_to_users;  ///< it stays until other runs that use it have ended
  Duration held;
  Duration expire_in;  ///< the rest of --min-hold, after which the lease expires; zero: none
};

/// No quorum confirmed the release, which is retried in the background.
struct ReleasePending {
  Ttl ttl;  ///< an unreleased lease expires within this time
  std::vector<ServerFault> faults;
};

/// The command succeeded, but no quorum of servers recorded that, so --once-per may run it again.
struct NotRecorded {
  Duration once_per;
};

/// The command would have succeeded, but a signal had asked it to end, so --once-per runs it again.
struct Interrupted {
  Duration once_per;
};

/// The command left processes running.
struct LeftRunning {
  std::string processes;  ///< proc::processes_text()
  bool killed;            ///< they were killed with the command's pid namespace
  bool expected;          ///< --descendants was given, or an enclosing run still holds the lease
  bool unprotected;       ///< the lock was released although they still run
  bool left_to_users;     ///< except for those that belong to nested runs
};

/// The outcome of the command. Reported again if the release shows that the lock was lost.
struct Concluded {
  Outcome outcome;
};

/// The command ends without the locks: the wait timed out or was interrupted, the servers did not
/// answer, or the command could not be started. The last event in JSON. Superseded and Fresh take
/// its place.
struct NotAcquired {
  Outcome outcome;  ///< with the exit code
  Duration waited;
};

using Any =
    std::variant<Waiting, StillWaiting, HeldAroundUs, WaitEnded, Superseded, Fresh, Acquired,
                 ReleasedWhilePaused, Renewed, RenewalFailed, VotesChanged, Lost, Strained,
                 Stopping, ScriptStopping, ScriptUnsafe, Unkillable, Awaiting, Ended, Released,
                 ReleasePending, NotRecorded, Interrupted, LeftRunning, Concluded, NotAcquired>;

}  // namespace event

class EventListener {
 public:
  virtual ~EventListener() = default;

  /// `at` is the wall-clock time, for display. Must not block.
  virtual void on(const event::Any& event, Milliseconds at) = 0;
};

/// Passes the events of one command on to all listeners.
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
