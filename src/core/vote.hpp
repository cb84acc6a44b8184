#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/protocol.hpp"
#include "core/types.hpp"
#include "support/boot_clock.hpp"

namespace redlock {

/// How a command ended whose `run` let its lease expire instead of releasing it (--min-hold).
struct Finished {
  Duration expire_in{};          ///< how long the lease was to last from the end of the command
  std::optional<int> exit_code;  ///< of the command; nullopt if a signal ended it
  std::optional<int> signal;     ///< that ended the command
};

/// Determines a position in the queue (PROTOCOL Q1). The smaller ticket is served first; of equal
/// ones, the waiter with the smaller id. Tickets are milliseconds of the servers' clocks, so that
/// waiters are served in order of arrival.
using Ticket = std::uint64_t;

/// A waiter's place in the order of all waiters: of two waiters, the newer one has the larger
/// place.
struct Place {
  Ticket ticket = 0;
  std::string waiter;  ///< its id
  friend auto operator<=>(const Place&, const Place&) = default;
};

/// A request to the process that keeps a lease: stop the command that runs under it.
struct StopRequest {
  std::string host;  ///< of the process that requests it
  std::string user;
  std::string reason;            ///< --reason, or the --note of the newer run; may be empty
  std::optional<Place> newer{};  ///< of the newer run that requests it; nullopt: requested by hand
};

/// The owner of a lease, as its owner record shows it to other users. Contains neither arguments of
/// the command nor secrets.
struct Owner {
  std::string host;
  std::string user;
  std::string command;      ///< basename of argv[0]
  std::string note;         ///< --note
  long pid = 0;             ///< of `run` itself, if `supervised`; otherwise of the
                            ///< process that the lease is for
  bool supervised = false;  ///< a `run` renews and releases it, and no other process should
  std::optional<Duration> renewed_for{};  ///< the ttl with which it is renewed; zero: it is not
                                          ///< renewed; nullopt: unknown
  std::optional<Finished> finished{};     ///< set once the command under the lease has ended
  bool newer = false;     ///< written by a version with a higher protocol number than ours
  std::size_t slots = 0;  ///< the number of slots of the lock; zero: it has no slots
  std::size_t take = 1;   ///< how many slots the owner took, or waits for
  std::vector<std::string> only{};  ///< of a waiter: Mode::only, if it is short
  unsigned priority = 0;            ///< --priority: higher ones acquire first; at most max_priority
  bool detached = false;   ///< it is bound to no process: the pid is that of the holder process
  bool stoppable = false;  ///< its holder process obeys a stop request
  std::optional<StopRequest> stop_request{};
  /// The key that it acquires after this one, before its command starts, and the last of these.
  /// Empty: none, or one that cannot be stored.
  std::string next_key{};
  std::string last_key{};
  std::optional<Place> place{};        ///< with --replace: a newer such run may ask it to stop
  std::optional<Duration> hold_for{};  ///< it is a hold, which ends after this long from its grant
                                       ///< (PROTOCOL F1)
  bool lifted = false;                 ///< it was a hold, but is now only that of its users
  unsigned long long pid_start = 0;    ///< of --while-pid: when its process began, in clock ticks
                                       ///< since boot; with the pid it names one process of a host
};

/// Whether the records are of the same process, as far as they show.
[[nodiscard]] inline bool is_same_process(const Owner& a, const Owner& b) {
  return a.host == b.host && a.user == b.user && a.pid == b.pid && a.command == b.command;
}

/// Whether `acquire` took it for a script that releases it: there is no command to stop.
[[nodiscard]] inline bool is_held_for_script(const Owner& owner) {
  return owner.detached || (!owner.supervised && owner.renewed_for == Duration::zero());
}

/// A run that has ended, as a server remembers it. All times are by that server's clock. If that
/// clock was set back, `started` and `ended` may be negative.
struct PastRun {
  Fence fence;                      ///< of two runs, the later one has the larger
  Duration started{};               ///< how long ago
  std::optional<Duration> ended{};  ///< how long ago; nullopt: only a newer version can read it
  Duration waited{};                ///< for the lock
  std::string result{};  ///< the `result` in the JSON of `run`; or `interrupted` or `succeeded`,
                         ///< where the exit status alone does not show whether it is a success
  std::optional<int> exit_code{};
  std::optional<int> signal{};
  std::optional<Owner> owner{};
  std::optional<LeaseId> lease{};  ///< nullopt: unknown, or not requested
};

enum class FaultKind {
  silent,         ///< no answer in time, or no connection at all: the only fault that may hide
                  ///< another client's lock
  denied,         ///< the login failed, or a right is missing
  unavailable,    ///< it replied that it cannot serve now: loading, read-only, out of memory, …
  misconfigured,  ///< it can never serve this configuration: no such database, not a Redis, …
  garbage,        ///< a malformed reply: protocol error, limits exceeded
};

/// Why a server gave no vote. `text` is one clause for the user, escaped for the terminal; it never
/// contains a secret.
struct Fault {
  FaultKind kind = FaultKind::silent;
  std::string text;
  bool refused = false;  ///< the server refused before it did anything, so the question may be
                         ///< repeated (R3)
};

/// How often a run did not run its command since the last run. There may have been more.
struct Skips {
  std::int64_t number;
  Duration first{};  ///< how long ago
  Duration last{};   ///< how long ago
  std::string why;   ///< the reason for the last one: the `result` in the JSON of `run`
};

/// What a server remembers of the runs of a lock.
struct LastRuns {
  std::optional<PastRun> last{};
  std::optional<PastRun> success{};    ///< the last success
  bool newer = false;                  ///< written by a newer version, so some of it cannot be read
  std::optional<Fault> unreadable{};   ///< why the record could not be read
  std::optional<Duration> kept_for{};  ///< how long the record is kept after the end of a run;
                                       ///< nullopt: there is no record
  std::vector<PastRun> kept{};         ///< all runs known in full, some of them twice
  std::optional<Skips> skips{};
};

/// What a release records of the run that ends with it.
struct RunRecord {
  PastRun run;  ///< the ages are those at `as_of`
  Instant as_of;
  bool success = false;
  Duration remember_for{};  ///< the shortest time for which it must be remembered
  bool passed_on = false;   ///< it is a run of another lease, which this server may have forgotten;
                            ///< otherwise the server fills in the owner of the lease
  std::string result_if_lost{};  ///< PastRun::result if the lease turns out to be lost
};

/// A process that works under a lease that it did not acquire, as it tells the servers
/// (PROTOCOL U1).
struct LeaseUser {
  std::string id;      ///< random; not a secret
  std::string record;  ///< its owner record
};

/// A user of a lease, as the servers show it.
struct ShownUser {
  Duration age{};              ///< since it came, by the server's clock
  std::optional<Owner> owner;  ///< nullopt: its record cannot be read
};

/// The lock that the holder of another one still waits for.
struct AwaitedLock {
  Resource resource;
  std::size_t ahead = 0;  ///< how many wait for it and come first
};

/// All that it takes to restore a hold at another server, or to lift it (PROTOCOL F2, F3). The
/// token, which the record of a hold of a slot has, too, is never printed or logged.
struct HoldCopy {
  Token token;
  std::string record;  ///< the owner record as the server keeps it
  Hold how{};          ///< with the slot; that is unknown in the answer to "ask"
};

/// The lease, ours or foreign, that a server shows under a key.
struct Holder {
  LeaseId id;
  bool shared = false;  ///< it stands for all shares of a shared lock, and its owner is the latest
                        ///< reader that still shares it; or it is one of these shares
  /// Not taken by this tool: another library, a key without expiry, a key of another type.
  bool foreign = false;
  std::string type = "string";        ///< the key's type at the server
  std::optional<Duration> remaining;  ///< nullopt: the key has no expiry
  std::optional<Duration> age;     ///< since it was acquired, by the server's clock; not if foreign
  std::optional<Fence> fence;      ///< not if foreign
  std::optional<Owner> owner;      ///< not if foreign, or if its record cannot be read
  std::vector<ShownUser> users{};  ///< the first few; only in the answer to "ask" and "inspect"
  std::optional<AwaitedLock>
      waits_for{};                 ///< no command runs under it yet; only from inspect_all()
  std::optional<HoldCopy> hold{};  ///< of a hold, in the answer to "acquire", "ask" and "inspect";
                                   ///< never if it stands for all shares
};

/// One reader of a shared lock.
struct Share {
  Holder holder;
  std::optional<std::size_t> slot;
  std::string slot_name{};  ///< in a pool by names; otherwise empty
};

/// What a server reports about itself when a connection to it opens. Facts that were not requested
/// or not reported stay empty.
struct ServerFacts {
  std::string run_id;          ///< identifies the process, whatever its addresses
  std::optional<Duration> up;  ///< a lower bound of its uptime; negative if its clock was set back
  bool reconnected = false;    ///< the connection is not the first to this address
  bool other_process = false;  ///< by its run id, it is not the process of the first connection
};

/// The queue as a server reports it with Granted, Held or Queued.
struct QueueStatus {
  Milliseconds time{};                        ///< its wall clock
  std::optional<std::uint64_t> max_ticket{};  ///< of the waiters in our class
  std::size_t ahead = 0;                      ///< number of waiters before us
  bool queued = false;                        ///< we are in the queue
  bool was_queued = false;                    ///< we were already queued before this attempt
  std::optional<Duration> may_change{};       ///< time until a waiter may acquire without a
                                              ///< notification; nullopt: only after one
  std::string free_slots{};                   ///< a digit for each slot, 1: it is free
  bool offered = false;                  ///< the lock is free, and the first waiter is notified
  bool newer = false;                    ///< the lock is free, and the first waiter runs a version
                                         ///< newer than ours
  bool watches = false;                  ///< the first waiter may not enter and keeps others out,
                                         ///< and we are to notice if it dies
  bool cannot_publish = false;           ///< a holder may not notify waiters when it releases
  std::string superseder{};              ///< the id of the waiter that supersedes us; empty: none
  std::optional<Owner> superseded_by{};  ///< the owner of that waiter
  std::optional<std::size_t> others{};   ///< number of waiters besides us, before or after us; only
                                         ///< if it was requested
  /// The owner of the first waiter, if not all of the slots that it takes are free, although there
  /// are enough for us.
  std::optional<Owner> collector{};
  std::optional<StopRequest> dismissal{};  ///< `stop --waiting` sent us away
};

/// One server's answer to "acquire".
struct Granted {
  Fence fence;  ///< this server's counter after the grant
  LeaseId id;
  ServerFacts server{};
  Slots slots{};
  QueueStatus queue{};
  LastRuns runs{};  ///< only if they were requested
};
struct Held {
  Holder holder;
  QueueStatus queue{};
  std::vector<Share> holds{};  ///< the slots on hold; of very many, those that end last
};
struct Queued {  ///< the lock is free for us, but other waiters come first
  QueueStatus queue{};
};
/// The key already holds this attempt's token: the same server was configured twice (R2).
struct Duplicate {};
using AcquireVote = std::variant<Granted, Held, Queued, Duplicate, Fault>;

/// One server's answer to "raise the fence counter".
struct Raised {
  ServerFacts server{};
};
struct NotRaised {};  ///< the key does not hold our token
using RaiseVote = std::variant<Raised, NotRaised, Fault>;

/// What a server stores about a lease besides its token. It is copied verbatim to a server that
/// lost the lease.
struct Provenance {
  Duration age{};           ///< since it was acquired
  bool supervised = false;  ///< Owner::supervised
  std::string record;       ///< the owner record as the servers keep it
};

/// One server's answer to "extend".
struct Extended {
  Fence fence;  ///< 0 when the owner record is gone
  Provenance provenance;
  ServerFacts server{};
  std::optional<StopRequest> stop_request{};
  Duration remaining{};  ///< of the lease; for a user of it, of its own entry
};
struct NotOurs {
  enum class Why { gone, released, held } why = Why::gone;
  std::optional<Holder> holder;    ///< for Why::held
  std::optional<Owner> breaker{};  ///< who broke it by force, with the reason as the note
  ServerFacts server{};            ///< only in the answer to "extend"
};
using ExtendVote = std::variant<Extended, NotOurs, Fault>;

/// One server's answer to "heal". No round counts it; the next extend shows the result.
struct Healed {};
using HealVote = std::variant<Healed, NotOurs, Fault>;

/// A notification to a waiter.
enum class Notification {
  granted,        ///< acquire now: it is our turn
  standby,        ///< poll after a while: another waiter was notified, or the lock's end may have
                  ///< changed
  standby_later,  ///< poll after a longer while: another waiter was notified
  taken,          ///< the lock is taken: no need to poll
  recheck,        ///< poll now, to show that we still wait or to see what has changed
  disconnected,   ///< no more notifications from now on
};

/// One server's answer to "release".
struct Released {
  bool recorded = false;       ///< the server has recorded the run that ended with it
  bool left_to_users = false;  ///< it stays there until its users end
  Duration rest{};  ///< for how long the lease would have lasted; only if it may have users
};
struct Supervised {
  Holder holder;  ///< a living `run` holds this lease: it is not to be released by hand (R9)
};
using ReleaseVote = std::variant<Released, NotOurs, Supervised, Fault>;

/// One server's answer to "break": the former holder, if there was one.
struct Broken {
  Holder holder;
};
struct NothingToBreak {};
struct OtherFence {
  Holder holder;  ///< --if-fence named another lease: not broken
};
struct ForeignKey {
  Holder holder;                      ///< not a lease of this tool, or its owner record was lost:
                                      ///< not broken
  std::optional<std::uint64_t> size;  ///< in bytes; in elements if the key is not a string
};
using BreakVote = std::variant<Broken, NothingToBreak, OtherFence, ForeignKey, Fault>;

/// A waiter, as `status` shows it.
struct Waiting {
  bool shared = false;
  Duration since{};  ///< time waited so far
  std::optional<Owner> owner;
};

/// How many slots of a lock are taken.
struct TakenSlots {
  std::size_t taken = 0;
  std::size_t limit = 0;  ///< how many slots the lock has; zero: unknown
};

/// The waiters and readers of a lock besides its holder; of many, only the first few.
struct LockParties {
  std::size_t waiters = 0;  ///< total number
  std::vector<Waiting> first_waiters{};
  std::size_t shares = 0;
  std::vector<Share> first_shares{};  ///< and those of holds
  /// A digit for each slot up to the last taken one, 1: it is free. All 0 if that is unknown, or if
  /// the slots have names that the request did not name.
  std::string free_slots{};
};

/// One server's answer to "count a skip".
struct Counted {};
using SkipVote = std::variant<Counted, Fault>;

/// One server's answer to "dismiss".
struct Dismissed {
  Milliseconds time{};                        ///< its wall clock
  std::optional<std::uint64_t> max_ticket{};  ///< that it knows of
  std::size_t queued = 0;                     ///< number of the concerned waiters that are queued
  std::vector<Owner> first_queued{};          ///< of many, only the first few
};
using DismissVote = std::variant<Dismissed, Fault>;

/// One server's answer to "inspect", or to "ask", which reports neither parties nor runs.
struct Free {
  LockParties parties{};
  ServerFacts server{};
  LastRuns runs{};
  bool ended = false;  ///< the lease that was asked about was asked to stop, and then released
};
struct Taken {
  Holder holder;
  LockParties parties{};
  ServerFacts server{};
  LastRuns runs{};
  bool ended = false;  ///< as in Free
};
using InspectVote = std::variant<Free, Taken, Fault>;

}  // namespace redlock
