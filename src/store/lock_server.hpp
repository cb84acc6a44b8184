#pragma once

#include <algorithm>
#include <asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/last_runs.hpp"
#include "core/queue.hpp"
#include "core/types.hpp"
#include "core/vote.hpp"
#include "store/owner_record.hpp"
#include "support/boot_clock.hpp"
#include "support/result.hpp"

namespace redlock {

/// A waiter's entry in the queue of one server.
struct QueueEntry {
  std::string id;  ///< random; not a secret
  Ticket ticket;
  bool polls;  ///< it gets no notifications, so other waiters wait for it only until its next poll
  Milliseconds life;  ///< the entry ends after this long without a poll; zero: it is not queued,
                      ///< and only shows which waiters it supersedes
};

struct AcquireRequest {
  Resource resource;
  Token token;
  Ttl ttl;
  OwnerRecord owner;
  Mode mode{};
  Slots slots{};                      ///< the slots to acquire; empty: the first free ones
  std::optional<QueueEntry> entry{};  ///< what to queue if the request is refused; nullopt: do not
                                      ///< queue, and acquire only if no waiter comes first
  bool supersedes = false;            ///< make older waiters that also have this flag give up
  bool wants_runs = false;            ///< fill in Granted::runs
  std::optional<std::size_t> max_waiting{};  ///< fill in QueueStatus::others, and if so many wait,
                                             ///< drop waiters that have died; more than zero
  /// The stop request for a holder with an older Owner::place. Only with `supersedes`; only sent if
  /// this waiter is the newest.
  std::optional<StopRequest> replacement{};
};

/// What to put back into the queue when an attempt is undone.
struct Requeue {
  QueueEntry entry;
  Mode mode;
  OwnerRecord owner;
};

struct RaiseRequest {
  Resource resource;
  Token token;
  Fence fence;
  Ttl ttl;
};

struct ExtendRequest {
  Resource resource;
  Token token;
  Ttl ttl;
  Slots slots{};                    ///< a lease with other slots counts as not ours
  Fence fence{};                    ///< the lease's fence, for servers that granted it late with
                                    ///< another one; 0: unknown
  std::optional<LeaseUser> user{};  ///< who extends it; nullopt: its keeper, or a user by hand
  bool is_new = false;              ///< the user is not registered yet: refused if the keeper left
  std::vector<std::string> slot_names{};  ///< as `slots`, in a pool by names

  /// Runs if the server answers after the deadline, at most once; null: such an answer is dropped.
  std::function<void(const ExtendVote&)> late{};
};

struct HealRequest {
  Resource resource;
  Token token;
  Ttl ttl;
  Fence fence;
  Provenance provenance;  ///< as reported by a server that still has the lease
  Hold hold{};
  std::optional<LeaseUser> user{};  ///< the user of the lease that heals it; nullopt: its keeper
};

/// Runs when an undo in the background failed: the server refused it, or the connection ended
/// before the answer, so the lease may still be there (R3). At most once for each connection.
using NotUndone = std::function<void()>;

/// All that is to happen when a lease is released. A release that is repeated, or sent a second
/// time, has the same value, as_of() then.
struct ReleaseRequest {
  Resource resource;
  Token token;
  /// The request does not come from the process that keeps the lease: the server refuses to release
  /// the lease of a `run`, and leaves a tombstone of any other.
  bool by_hand = false;
  Duration expire_in{};  ///< if more than zero, the key is not deleted, but expires after this
                         ///< time, before which no other client may acquire the lock
  std::optional<Requeue> requeue{};  ///< the queue entry with which a failed attempt keeps waiting
  NotUndone not_undone{};            ///< for requests that earlier connections may still deliver
  std::optional<Owner> finished{};   ///< with `expire_in`: the owner record until the lease expires
  std::optional<RunRecord> run{};    ///< the run to record if the lease is still ours there
  Instant as_of{};                   ///< when `expire_in` and the ages of `run` were right
  std::string user{};  ///< the id of the user of the lease that ends; empty: the lease is released
  /// Other processes may use the lease, to which it was handed over or which the command left: it
  /// is left to those that do. Implied by `by_hand` and `user`.
  bool may_have_users = false;
  std::optional<StopRequest> stop_users{};  ///< ask those to stop
  /// How long the server must remember that the keeper released the lease, even if the lease is not
  /// there: then its keeper cannot restore it, nor other clients a hold, and a user restores it as
  /// a lease that its keeper has left. Zero: as long as the lease is still to last there.
  Duration tombstone_life{};
  /// Only a share with these slots: a stray grant, in whose place the lease may have been healed
  /// meanwhile. Empty: whatever there is.
  Slots slots{};
  std::vector<std::string> slot_names{};  ///< as `slots`, in a pool by names
};

/// The request as it is to be sent at `now`.
inline ReleaseRequest as_of(ReleaseRequest request, Instant now) {
  request.expire_in = std::max(Duration::zero(), request.expire_in - (now - request.as_of));
  if (request.run) request.run = as_of(std::move(*request.run), now);
  request.as_of = now;
  return request;
}

struct BreakRequest {
  Resource resource;
  std::optional<Fence> only_if{};  ///< only the lease with this fence
  Owner breaker{};                 ///< who breaks it, with the reason as the note
  /// The id of a foreign key that may be broken, as ForeignKey reported it.
  std::optional<LeaseId> foreign{};
  /// Break only this hold. Even where it is not, remember for `tombstone_life` that it was broken:
  /// then no client can restore it.
  std::optional<LeaseId> hold{};
  Duration tombstone_life{};
  std::optional<std::string> slot{};  ///< only the lease in this slot, by number or name
};

/// Sends a stop request to the holder of a lease, or only inspects the lease.
struct AskRequest {
  Resource resource;
  std::optional<LeaseId> lease{};     ///< the lease whose holder to ask; nullopt: only inspect
  std::optional<std::string> slot{};  ///< the slot whose share to inspect, by number or name
  StopRequest request{};
  bool exclusive = false;  ///< the lease is known to be no share
};

/// Sends waiters away, or only asks for those in the queue.
struct DismissRequest {
  Resource resource;
  std::optional<Ticket> up_to{};  ///< waiters with this ticket or a smaller one; nullopt: only ask
  StopRequest request{};          ///< who sends them away, and why
};

/// Which runs an inspection reports.
enum class RunsTold {
  none,
  last,  ///< the last one, the last success and the skips
  kept,  ///< all that the server keeps, too: many times as long
};

/// What an inspection reports besides the holder, the waiters and the shares.
struct InspectScope {
  // Implicit, since most callers only choose the runs.
  // cppcheck-suppress noExplicitConstructor
  InspectScope(RunsTold told = RunsTold::last,  // NOLINT(google-explicit-constructor)
               std::vector<std::string> names = {})
      : runs(told), slot_names(std::move(names)) {}

  RunsTold runs;
  std::vector<std::string> slot_names;  ///< the slots of LockParties::free_slots, in this order;
                                        ///< empty: the slots have numbers
};

/// Which locks a list contains.
enum class Listed {
  held,  ///< locks that are held, or were until a moment ago
  used,  ///< also locks whose last run is remembered
};

/// The progress of a list.
struct ListProgress {
  std::uint64_t keys = 0;             ///< keys scanned so far, approximately
  std::optional<std::uint64_t> of{};  ///< keys in the database; nullopt: unknown
};

/// Which locks to list, and how long that may take.
struct ListRequest {
  Listed listed = Listed::held;
  std::string prefix{};       ///< of the keys; keys without it may be listed, too
  Duration answer_timeout{};  ///< for each part of the list: a server may have any number of keys
  bool wants_other_key = false;    ///< fill in LockList::other_key
  Instant until = Instant::max();  ///< the list ends then, with what was found so far
  std::function<void(const ListProgress&)> progress{};  ///< called after each part; may be null
};

/// The locks of one server.
struct LockList {
  std::vector<Resource> resources;
  std::vector<Fault> skipped;      ///< one for each key that may be a lock but could not be read
  std::optional<Fault> missing{};  ///< why the locks of a part of the server are not in the list
  std::optional<std::string> other_key{};  ///< if there are no locks: a key of another client
};

/// The port to one server, which has one vote. The engine knows nothing else of Redis, of files on
/// this host, or of a simulation.
///
/// Each question is asked once, and always answered: a server's silence is a Fault, never an
/// exception. The time until `deadline` is that of each step: to connect, to find the master in a
/// cluster, to teach a server the scripts, to get the answer. So the answer comes by `deadline`
/// from a server that is connected and knows the scripts, and five times as late at most. Only an
/// extension may be answered once more after that. Questions reach the server in order while its
/// connection lives. Requests are copied, so they may be temporaries. Single-threaded. The server
/// must outlive the questions under way.
class LockServer {
 public:
  virtual ~LockServer() = default;

  /// The address without user and password, for messages and fingerprints, such as
  /// `redis://10.0.0.1:6379/2`.
  [[nodiscard]] virtual const std::string& name() const = 0;

  virtual asio::awaitable<AcquireVote> acquire(AcquireRequest request, Instant deadline) = 0;
  virtual asio::awaitable<RaiseVote> raise_fence(RaiseRequest request, Instant deadline) = 0;
  virtual asio::awaitable<ExtendVote> extend(ExtendRequest request, Instant deadline) = 0;
  virtual asio::awaitable<HealVote> heal(HealRequest request, Instant deadline) = 0;
  virtual asio::awaitable<ReleaseVote> release(ReleaseRequest request, Instant deadline) = 0;
  virtual asio::awaitable<BreakVote> break_lock(BreakRequest request, Instant deadline) = 0;
  /// `share`: the id of a lease. If that lease is a share of a shared lock, it is reported as the
  /// holder, instead of all shares together.
  virtual asio::awaitable<InspectVote> inspect(Resource resource, std::optional<LeaseId> share,
                                               Instant deadline, InspectScope scope = {}) = 0;

  /// Counts a run that did not run its command, for `status` to show. `why`: one word.
  virtual asio::awaitable<SkipVote> count_skip(Resource /*resource*/, std::string /*why*/,
                                               Instant /*deadline*/) {
    co_return Fault{FaultKind::misconfigured, "it cannot count what did not run"};
  }
  /// Returns the requested lease as the holder; if that lease is not on this server, the actual
  /// holder. The owner record shows whether a stop request is stored with the lease, this one or an
  /// earlier one.
  virtual asio::awaitable<InspectVote> ask_holder(AskRequest request, Instant deadline) = 0;

  /// Remembers for a day that these waiters are to give up, notifies them, and reports how many are
  /// queued.
  virtual asio::awaitable<DismissVote> dismiss(DismissRequest /*request*/, Instant /*deadline*/) {
    co_return Fault{FaultKind::misconfigured, "it cannot send waiters away"};
  }

  /// Every resource with an owner record, or last runs, on this server, and the keys that could not
  /// be read. A fault, which includes the progress, if the server cannot list them.
  virtual asio::awaitable<Result<LockList, Fault>> list(ListRequest request) = 0;

  /// Undoes whatever an acquire or a heal with this token did, or may still do, on this server.
  /// Sends a compare-and-delete on every connection that carried the request. Returns at once.
  virtual void undo(const Resource& resource, const Token& token,
                    std::optional<Requeue> requeue = std::nullopt,
                    NotUndone not_undone = nullptr) = 0;

  /// Removes a waiter from the queue, after any request that queued it. Returns at once, without
  /// waiting for the answer.
  virtual void leave(const Resource& resource, const std::string& waiter) = 0;

  /// Like leave(), if the last answer was a grant, which removed the waiter: only requests that are
  /// still under way on abandoned connections can queue it again.
  virtual void leave_late(const Resource& resource, const std::string& waiter) = 0;

  /// Calls `notified`, from the executor, for each notification to this waiter. Once this has
  /// returned without a fault, no notification is missed until Notification::disconnected or
  /// unsubscribe(). One waiter at a time. A store that cannot notify returns a fault; its waiters
  /// poll.
  virtual asio::awaitable<std::optional<Fault>> subscribe(
      Resource /*resource*/, std::string /*waiter*/, std::function<void(Notification)> /*notified*/,
      Instant /*deadline*/) {
    co_return Fault{FaultKind::misconfigured, "it cannot notify waiters"};
  }
  virtual void unsubscribe() {}

  /// Calls `notify`, from the executor, whenever the server ends the connection in use, for example
  /// because it restarted or another master took its place. A store without connections never does.
  virtual void on_disconnect(std::function<void()> /*notify*/) {}

  /// Whether the server persists nothing, so that it forgets every lock when it restarts, or a
  /// store on this host when the host does; nullopt: it does not tell.
  virtual asio::awaitable<std::optional<bool>> persists_nothing(Instant /*deadline*/) {
    co_return false;
  }

  /// Whether a connection to the server was ever open. If so, the server may have read requests
  /// even if it never answered.
  [[nodiscard]] virtual bool was_reached() const = 0;

  /// Sends what is still to be sent, shuts down the sending half and waits for the server to do the
  /// same, at most until `deadline`. After the deadline it only sends what the socket takes at
  /// once. No question may follow.
  virtual asio::awaitable<void> close(Instant deadline) = 0;
};

}  // namespace redlock
