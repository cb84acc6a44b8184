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

/// The end of a command whose `run` left its lease to expire (--min-hold).
struct Finished {
  Duration expire_in{};          ///< how long the lease was to last from then on
  std::optional<int> exit_code;  ///< of the command, or
  std::optional<int> signal;     ///< the signal that ended it
};

/// A position in the queue (PROTOCOL Q1). The smaller ticket is served first; of equal ones, the
/// waiter with the smaller id. In milliseconds of the servers' clocks, so that the order is that of
/// arrival.
using Ticket = std::uint64_t;

/// A waiter's place in the order of all waiters: the newer of two has the larger.
struct Place {
  Ticket ticket = 0;
  std::string waiter;  ///< its id
  friend auto operator<=>(const Place&, const Place&) = default;
};

/// The process that keeps a lease was asked to stop what runs under it.
struct StopRequest {
  std::string host;  ///< whose request it is
  std::string user;
  std::string reason;            ///< --reason, or the --note of the newer run; may be empty
  std::optional<Place> newer{};  ///< of the run that is to replace it; nothing: asked by hand
};

/// The owner of a lease, as its owner record shows it to other people. Never arguments, never
/// secrets.
struct Owner {
  std::string host;
  std::string user;
  std::string command;      ///< basename of argv[0]
  std::string note;         ///< --note
  long pid = 0;             ///< of `run` itself, if `supervised`; otherwise of the
                            ///< process that the lease is for
  bool supervised = false;  ///< `run` renews it and releases it; no other process should
  std::optional<Duration> renewed_for{};  ///< the ttl that it is renewed with; zero: it is not
                                          ///< renewed; nothing: unknown
  std::optional<Finished> finished{};     ///< no process runs under it any more
  bool newer = false;     ///< written by a version with a higher protocol number than ours
  std::size_t slots = 0;  ///< of how many slots it took one or more; zero: of none
  std::size_t take = 1;   ///< how many it took, or waits for
  bool detached = false;  ///< it is bound to no process: the pid is that of the holder process
  std::optional<bool>
      stoppable{};  ///< whether its holder process stops what runs under it at a stop
                    ///< request; nothing: an older version, which knows of none
  std::optional<StopRequest> stop_request{};
  std::optional<Place> place{};      ///< with --replace: a newer such run may ask it to stop
  unsigned long long pid_start = 0;  ///< of --while-pid: when its process began, in clock ticks
                                     ///< since boot; with the pid it names one process of a host
};

/// A run that has ended, as a server remembers it. All times are by that server's own clock: when
/// the clock was set back, a run may have started less than no time ago.
struct PastRun {
  Fence fence;                      ///< of two runs, the later one has the larger
  Duration started{};               ///< how long ago
  std::optional<Duration> ended{};  ///< how long ago; nothing: a newer version knows
  Duration waited{};                ///< for the lock
  std::string result{};             ///< as in the JSON of `run`
  std::optional<int> exit_code{};
  std::optional<int> signal{};
  std::optional<Owner> owner{};
  std::optional<LeaseId> lease{};  ///< nothing: not known, or not asked for
};

enum class FaultKind {
  silent,         ///< no answer in time, or no connection at all: the only fault that may hide
                  ///< another client's lock
  denied,         ///< login, rights
  unavailable,    ///< it answered that it cannot serve now: loading, read-only, out of memory, …
  misconfigured,  ///< it can never serve what we were told to ask: no such database, not a Redis, …
  garbage,        ///< a malformed reply: protocol error, limits exceeded
};

/// Why a server gave no vote. `text` is one clause for people, escaped for the terminal, without
/// any secret.
struct Fault {
  FaultKind kind = FaultKind::silent;
  std::string text;
  bool refused = false;  ///< the server refused before it did anything: the same may be asked again
                         ///< (R3)
};

/// Runs that did not run their command, since the last run: at least these.
struct Skips {
  std::int64_t number;
  Duration first{};  ///< how long ago
  Duration last{};   ///< how long ago
  std::string why;   ///< that was one: as the result in the JSON of `run`
};

/// What a server remembers of the runs of a lock.
struct LastRuns {
  std::optional<PastRun> last{};
  std::optional<PastRun> success{};  ///< the last one that ended with exit code 0
  bool newer = false;                ///< written by a newer version, so that not all of it is known
  std::optional<Fault> unreadable{};   ///< why the server does not tell them
  std::optional<Duration> kept_for{};  ///< how long the record lives from the end of a run;
                                       ///< nothing: there is none
  std::vector<PastRun> kept{};         ///< all that it knows in full, some of them twice
  std::optional<Skips> skips{};
};

/// What a release records of the run that ends with it.
struct RunRecord {
  PastRun run;  ///< the ages are those at `as_of`
  Instant as_of;
  bool success = false;
  Duration remember_for{};  ///< how long it must be remembered at least
  bool passed_on = false;  ///< another lease's run, which this server may have forgotten; otherwise
                           ///< the server fills in the owner of the lease
};

/// The lease, ours or foreign, that a server shows under a key.
struct Holder {
  LeaseId id;
  bool shared = false;  ///< all shares of a shared lock together, with the latest reader that still
                        ///< shares it as their owner; or one of them
  /// Not taken by this tool: another library, a key without expiry, a key of another type.
  bool foreign = false;
  std::string type = "string";        ///< the key's type at the server
  std::optional<Duration> remaining;  ///< nothing: the key has no expiry
  std::optional<Duration> age;  ///< since it was acquired, by the server's own clock; only for ours
  std::optional<Fence> fence;   ///< only for ours
  std::optional<Owner> owner;   ///< only for ours, when its record can be read
};

/// What a server reports of itself when a connection to it opens. Facts that were not asked for, or
/// are not told, stay empty.
struct ServerFacts {
  std::string run_id;          ///< of the process, whatever its addresses
  std::optional<Duration> up;  ///< since it started, at least; negative when its clock was set back
  bool reconnected = false;    ///< the connection is not the first to this address
  bool other_process = false;  ///< nor is the process, by its run id
};

/// What a server says of the queue when it answers an acquire with Granted, Held or Queued.
struct QueueStatus {
  Milliseconds time{};                        ///< its wall clock
  std::optional<std::uint64_t> max_ticket{};  ///< of the waiters in the queue
  std::size_t ahead = 0;                      ///< number of waiters before us
  bool queued = false;                        ///< we are in the queue
  bool was_queued = false;                    ///< we were before this attempt
  std::optional<Duration> may_change{};       ///< until a waiter may acquire without a
                                              ///< notification; nothing: never by itself
  std::string free_slots{};                   ///< a digit for each slot, 1: it is free
  bool offered = false;                  ///< the lock is free, and the first waiter is notified
  bool newer = false;                    ///< the lock is free, and the first waiter is of a
                                         ///< newer version than we know
  bool cannot_publish = false;           ///< a holder may not notify waiters when it releases
  std::string superseder{};              ///< the id of the waiter that supersedes us; empty: none
  std::optional<Owner> superseded_by{};  ///< whose that is
  std::optional<std::size_t> others{};   ///< number of waiters besides us, before us or not; only
                                         ///< if it was asked for
  /// Whose waiter comes first and takes several slots, while there is room for us, not for it.
  std::optional<Owner> collector{};
};

/// One server's answer to "acquire".
struct Granted {
  Fence fence;  ///< this server's counter after the grant
  LeaseId id;
  ServerFacts server{};
  Slots slots{};
  QueueStatus queue{};
  LastRuns runs{};  ///< if they were asked for
};
struct Held {
  Holder holder;
  QueueStatus queue{};
};
struct Queued {  ///< the lock is free for us, but other waiters come first
  QueueStatus queue{};
};
/// The key already holds this attempt's token: the same server was given twice (R2).
struct Duplicate {};
using AcquireVote = std::variant<Granted, Held, Queued, Duplicate, Fault>;

/// One server's answer to "raise the fence counter".
struct Raised {
  ServerFacts server{};
};
struct NotRaised {};  ///< the key does not hold our token
using RaiseVote = std::variant<Raised, NotRaised, Fault>;

/// What a server stores about a lease besides its token; copied unread to a server that lost it.
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
};
struct NotOurs {
  enum class Why { gone, released, held } why = Why::gone;
  std::optional<Holder> holder;    ///< for Why::held
  std::optional<Owner> breaker{};  ///< who broke it by force, with the reason as the note
  ServerFacts server{};            ///< only in the answer to "extend"
};
using ExtendVote = std::variant<Extended, NotOurs, Fault>;

/// One server's answer to "heal". Counts in no round; the next extend shows the result.
struct Healed {};
using HealVote = std::variant<Healed, NotOurs, Fault>;

/// A notification to a waiter.
enum class Notification {
  granted,        ///< acquire now: it is our turn
  standby,        ///< poll after a while: another was notified, or the lock's end may have changed
  standby_later,  ///< poll after a longer while: another was notified
  taken,          ///< the lock is taken: no need to poll
  recheck,        ///< poll: show that we are there, or see what has changed
  disconnected,   ///< no more notifications from now on
};

/// One server's answer to "release".
struct Released {
  bool recorded = false;  ///< the run that ended with it is remembered
};
struct Supervised {
  Holder holder;  ///< a living `run` holds this lease: it is not to be released by hand (R9)
};
using ReleaseVote = std::variant<Released, NotOurs, Supervised, Fault>;

/// One server's answer to "break": what held the key before, if anything.
struct Broken {
  Holder holder;
};
struct NothingToBreak {};
struct OtherFence {
  Holder holder;  ///< --if-fence named another lease: not broken
};
struct ForeignKey {
  Holder holder;                      ///< no lease of ours, or one whose owner record was lost: not
                                      ///< broken
  std::optional<std::uint64_t> size;  ///< in bytes, or in elements if it is no string
};
using BreakVote = std::variant<Broken, NothingToBreak, OtherFence, ForeignKey, Fault>;

/// A waiter, as a server shows it to people.
struct Waiting {
  bool shared = false;
  Duration since{};  ///< time waited so far
  std::optional<Owner> owner;
};

/// One reader of a shared lock.
struct Share {
  Holder holder;
  std::optional<std::size_t> slot;
};

/// The waiters and readers of a lock besides its holder; of many only the first.
struct LockParties {
  std::size_t waiters = 0;  ///< total number
  std::vector<Waiting> first_waiters{};
  std::size_t shares = 0;
  std::vector<Share> first_shares{};
  std::string free_slots{};  ///< a digit for each slot up to the last taken one, 1: it is free
};

/// One server's answer to "count a skip".
struct Counted {};
using SkipVote = std::variant<Counted, Fault>;

/// One server's answer to "inspect", and to "ask", which tells of no parties and runs.
struct Free {
  LockParties parties{};
  ServerFacts server{};
  LastRuns runs{};
};
struct Taken {
  Holder holder;
  LockParties parties{};
  ServerFacts server{};
  LastRuns runs{};
};
using InspectVote = std::variant<Free, Taken, Fault>;

}  // namespace redlock
