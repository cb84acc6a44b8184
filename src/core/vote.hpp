#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/types.hpp"
#include "support/boot_clock.hpp"

namespace redlock {

/// How the command ended whose `run` left its lease to expire (--min-hold).
struct Finished {
  Duration kept{};               ///< how long the lease was to last from then on
  std::optional<int> exit_code;  ///< of the command, or
  std::optional<int> signal;     ///< what it died of
};

/// Who stands behind a lease, as its owner record tells other people. Never arguments, never secrets.
struct Owner {
  std::string host;
  std::string user;
  std::string command;                    ///< basename of argv[0]
  std::string note;                       ///< --note
  long pid = 0;                           ///< of `run` itself, if `supervised`; else of the process that the lease is for
  bool supervised = false;                ///< `run` renews it and releases it; nobody else should
  std::optional<Duration> renewed_for{};  ///< the ttl that it is renewed with; zero: nothing renews it; nothing: not known
  std::optional<Finished> finished{};     ///< nobody runs under it any more
  bool newer = false;                     ///< written by a version with a higher protocol number than ours
};

/// The lease, ours or foreign, that a server shows under a key.
struct Holder {
  LeaseId id;
  bool shared = false;                ///< all shares of a shared lock together, with the latest reader as their owner; or one of them
  bool foreign = false;               ///< not taken by this tool: another library, a key without expiry, a key of another type
  std::string type = "string";        ///< the key's type at the server
  std::optional<Duration> remaining;  ///< nothing: the key has no expiry
  std::optional<Duration> age;        ///< since it was acquired, by the server's own clock; only for ours
  std::optional<Fence> fence;         ///< only for ours
  std::optional<Owner> owner;         ///< only for ours, when its record can be read
};

enum class FaultKind {
  silent,         ///< no answer in time, or no connection at all: the only fault that may hide another's lock
  denied,         ///< login, rights
  unavailable,    ///< it answered that it cannot serve now: loading, read-only, out of memory, …
  misconfigured,  ///< it can never serve what we were told to ask: no such database, not a Redis, …
  garbage,        ///< an answer that is none: protocol error, limits exceeded
};

/// Why a server gave no vote. `text` is one clause for people, escaped for the terminal, without any secret.
struct Fault {
  FaultKind kind = FaultKind::silent;
  std::string text;
  bool refused = false;  ///< the server said so before it did anything: the same may be asked again (R3)
};

/// What a server says of itself when a connection to it opens. What it was not asked, or does not tell, stays empty.
struct ServerFacts {
  std::string run_id;          ///< of the process, whatever its addresses
  std::optional<Duration> up;  ///< since it started, at least; negative when its clock was set back
};

/// What a server says of the line of those who wait, each time somebody asks it for the lock.
struct QueueStatus {
  Milliseconds time{};                          ///< its wall clock
  std::optional<std::uint64_t> max_ticket{};  ///< of those in the queue
  std::size_t ahead = 0;                        ///< how many are before us
  bool queued = false;                         ///< we are
  bool was_queued = false;                     ///< and were before we asked
  std::optional<Duration> may_change{};           ///< until somebody may come in without being called; nothing: never by itself
  std::string free_slots{};                       ///< a digit for each slot, 1: it is free
  bool offered = false;                         ///< it may be had, and the first in the queue was told so
  bool newer = false;                           ///< it may be had, and the first in the queue is of a newer version than we know
  bool mute = false;                            ///< a holder may not notify anybody when it releases
};

/// One server's answer to "acquire".
struct Granted {
  Fence fence;  ///< this server's counter after the grant
  LeaseId id;
  ServerFacts server{};
  std::optional<std::size_t> slot{};
  QueueStatus queue{};
};
struct Held {
  Holder holder;
  QueueStatus queue{};
};
struct Queued {  ///< it may be had, but others wait for it and come first
  QueueStatus queue{};
};
struct Duplicate {};  ///< the key already holds this attempt's token: the same server was given twice (R2)
using AcquireVote = std::variant<Granted, Held, Queued, Duplicate, Fault>;

/// One server's answer to "raise the fence counter".
struct Raised {
  ServerFacts server{};
};
struct NotRaised {};  ///< the key does not hold our token
using RaiseVote = std::variant<Raised, NotRaised, Fault>;

/// What a server keeps about a lease beside its token; travels to a server that lost it, unread.
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
};
struct NotOurs {
  enum class Why { gone, released, held } why = Why::gone;
  std::optional<Holder> holder;    ///< for Why::held
  std::optional<Owner> breaker{};  ///< who broke it by force, with the reason as the note
  ServerFacts server{};            ///< only in the answer to "extend"
};
using ExtendVote = std::variant<Extended, NotOurs, Fault>;

/// One server's answer to "take the lease that you lost". Counts in no round; the next extend shows what came of it.
struct Healed {};
using HealVote = std::variant<Healed, NotOurs, Fault>;

/// What somebody who waits is told.
enum class Notification {
  granted,       ///< come in: it is our turn
  standby,      ///< stand by: the one before us was called
  standby_later,       ///< stand by for longer: somebody before us was
  taken,  ///< the lock is taken: no need to stand by
  recheck,        ///< the lock's end has changed
  disconnected,        ///< from now on nothing more is heard
};

/// One server's answer to "release".
struct Released {};
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
  Holder holder;  ///< --if-fence named another lease: left alone
};
using BreakVote = std::variant<Broken, NothingToBreak, OtherFence, Fault>;

/// Somebody who waits, as a server shows it to people.
struct Waiting {
  bool shared = false;
  Duration since{};  ///< how long already
  std::optional<Owner> owner;
};

/// One reader of a shared lock.
struct Share {
  Holder holder;
  std::optional<std::size_t> slot;
};

/// Who is at a lock besides its holder; of many only the first.
struct LockParties {
  std::size_t waiters = 0;  ///< how many there are
  std::vector<Waiting> first_waiters{};
  std::size_t shares = 0;
  std::vector<Share> first_shares{};
};

/// One server's answer to "who holds this, and who waits?".
struct Free {
  LockParties parties{};
  ServerFacts server{};
};
struct Taken {
  Holder holder;
  LockParties parties{};
  ServerFacts server{};
};
using InspectVote = std::variant<Free, Taken, Fault>;

}  // namespace redlock
