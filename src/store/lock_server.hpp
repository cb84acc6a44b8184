#pragma once

#include <asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/queue.hpp"
#include "core/types.hpp"
#include "core/vote.hpp"
#include "store/owner_record.hpp"
#include "support/boot_clock.hpp"
#include "support/result.hpp"

namespace redlock {

/// A waiter's entry in the queue of one server.
struct QueueEntry {
  std::string id;  ///< random; proves nothing
  Ticket ticket;
  bool polls;  ///< it gets no notifications, so other waiters wait for it only until its next poll
  Milliseconds life;  ///< the entry ends after this long without a poll; zero: it is not queued,
                      ///< and says only which waiters it supersedes
};

struct AcquireRequest {
  Resource resource;
  Token token;
  Ttl ttl;
  OwnerRecord owner;
  Mode mode{};
  Slots slots{};                      ///< those wanted; empty: the lowest free ones
  std::optional<QueueEntry> entry{};  ///< what to queue if it is refused; nothing: we do not wait,
                                      ///< and acquire only where no waiter comes first
  bool supersedes = false;            ///< older waiters that supersede, too, give up for us
  bool wants_runs = false;            ///< tell Granted::runs
  std::optional<std::size_t> max_waiting{};  ///< tell QueueStatus::others, and drop waiters that
                                             ///< are gone where so many wait; more than zero
  /// Ask a holder with an older Owner::place to stop; only with `supersedes`, for the newest.
  std::optional<StopRequest> replacement{};
};

/// What to queue again when an attempt is undone.
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
  Slots slots{};  ///< a lease with other slots is not ours
  Fence fence{};  ///< the lease's fence, for servers that granted it late with
                  ///< another one; 0: unknown
};

struct HealRequest {
  Resource resource;
  Token token;
  Ttl ttl;
  Fence fence;
  Provenance provenance;  ///< as reported by a server that still has the lease
  Hold hold{};
};

/// Runs when an undo in the background failed: at most once for each connection, when the server
/// refused it, or when the connection ended before the answer, so that the lease may still be there
/// (R3).
using NotUndone = std::function<void()>;

struct ReleaseRequest {
  Resource resource;
  Token token;
  /// Another process than the one that keeps the lease asks: a `run`'s lease is refused, a
  /// tombstone is left.
  bool by_hand = false;
  Duration expire_in{};  ///< more than zero: the key is not deleted, but expires after this time
  std::optional<Requeue> requeue{};  ///< the queue entry with which a failed attempt keeps waiting
  NotUndone not_undone{};            ///< for what earlier connections may still deliver
  std::optional<Owner> finished{};   ///< with `expire_in`: the owner record from then on
  std::optional<RunRecord> run{};    ///< to be remembered, if the lease is still ours there; its
                                     ///< ages are those of now
};

struct BreakRequest {
  Resource resource;
  std::optional<Fence> only_if{};  ///< only the lease with this fence
  Owner breaker{};                 ///< who breaks it, with the reason as the note
  /// What may be broken although it is no lease of ours: what a ForeignKey named.
  std::optional<LeaseId> foreign{};
};

/// Asks the holder of a lease to stop what runs under it, or only looks whose it is.
struct AskRequest {
  Resource resource;
  std::optional<LeaseId> lease{};     ///< whom to ask; nothing: look
  std::optional<std::size_t> slot{};  ///< to look at the share in this slot
  StopRequest request{};
};

/// Which runs an inspection tells.
enum class RunsTold {
  none,
  last,  ///< the last one, the last success and the skips
  kept,  ///< all that the server keeps, too: many times as long
};

/// Which locks a list has.
enum class Listed {
  held,  ///< now or until a moment ago
  used,  ///< these, and those whose last run is remembered
};

/// How far a list has come.
struct ListProgress {
  std::uint64_t keys = 0;             ///< of all in the database; about so many
  std::optional<std::uint64_t> of{};  ///< nothing: the server does not tell
};

/// Which locks a list is to have, and how long it may take.
struct ListRequest {
  Listed listed = Listed::held;
  std::string prefix{};       ///< of the keys; others may be listed all the same
  Duration answer_timeout{};  ///< for each part of the list: a server may have any number of keys
  bool wants_other_key = false;    ///< tell LockList::other_key
  Instant until = Instant::max();  ///< the list ends then, with what was found so far
  std::function<void(const ListProgress&)> progress{};  ///< called after each part; may be null
};

/// The locks of one server.
struct LockList {
  std::vector<Resource> resources;
  std::vector<Fault> skipped;  ///< keys that may be locks but could not be read, one by one
  std::optional<std::string> other_key{};  ///< where there are none: a key of another client
};

/// The port to one server: one vote. All that the engine knows of Redis, of a file on this host, or
/// of a simulation.
/// | Each question is asked once, before `deadline`, and always answered by then: a server's
/// silence is a Fault, never an exception. Questions keep their order on the way to the server
/// while its connection lives. Requests are copied, so they may be temporaries. Single-threaded.
/// The server must outlive the questions under way.
class LockServer {
 public:
  virtual ~LockServer() = default;

  /// For people and for fingerprints: the address without user or password, e.g.
  /// `redis://10.0.0.1:6379/2`.
  [[nodiscard]] virtual const std::string& name() const = 0;

  virtual asio::awaitable<AcquireVote> acquire(AcquireRequest request, Instant deadline) = 0;
  virtual asio::awaitable<RaiseVote> raise_fence(RaiseRequest request, Instant deadline) = 0;
  virtual asio::awaitable<ExtendVote> extend(ExtendRequest request, Instant deadline) = 0;
  virtual asio::awaitable<HealVote> heal(HealRequest request, Instant deadline) = 0;
  virtual asio::awaitable<ReleaseVote> release(ReleaseRequest request, Instant deadline) = 0;
  virtual asio::awaitable<BreakVote> break_lock(BreakRequest request, Instant deadline) = 0;
  /// `share`: the id of a lease; if it is one share of several, the holder is that share.
  virtual asio::awaitable<InspectVote> inspect(Resource resource, std::optional<LeaseId> share,
                                               Instant deadline,
                                               RunsTold runs = RunsTold::last) = 0;

  /// Counts a run that did not run its command, for people. `why`: one word.
  virtual asio::awaitable<SkipVote> count_skip(Resource /*resource*/, std::string /*why*/,
                                               Instant /*deadline*/) {
    co_return Fault{FaultKind::misconfigured, "it cannot count what did not run"};
  }
  /// The lease that was asked, or looked at, as its holder; another where that is not here. Its
  /// owner record shows whether a request is stored with it, this one or an earlier one.
  virtual asio::awaitable<InspectVote> ask_holder(AskRequest request, Instant deadline) = 0;

  /// Every resource with an owner record here, or with last runs, and the keys that could not be
  /// read. A fault, which says how far it came, when the server cannot list them.
  virtual asio::awaitable<Result<LockList, Fault>> list(ListRequest request) = 0;

  /// Undoes whatever an acquire or a heal with this token did or may still do here: sends a
  /// compare-and-delete after it on every connection that carried it. Returns at once.
  virtual void undo(const Resource& resource, const Token& token,
                    std::optional<Requeue> requeue = std::nullopt,
                    NotUndone not_undone = nullptr) = 0;

  /// Removes a waiter from the queue, after any request that queued it. Returns at once, without
  /// the answer.
  virtual void leave(const Resource& resource, const std::string& waiter) = 0;

  /// The same where the last answer was a grant, which removed the waiter: only requests that are
  /// still under way on connections given up before can queue it again.
  virtual void leave_late(const Resource& resource, const std::string& waiter) = 0;

  /// Calls `notified`, from the executor, for each notification to a waiter of the resource. Once
  /// this has returned without a fault, no notification is missed until Notification::disconnected
  /// or unsubscribe(). One waiter at a time. A store that cannot notify returns a fault; its
  /// waiters poll.
  virtual asio::awaitable<std::optional<Fault>> subscribe(
      Resource /*resource*/, std::string /*waiter*/, std::function<void(Notification)> /*notified*/,
      Instant /*deadline*/) {
    co_return Fault{FaultKind::misconfigured, "it cannot notify waiters"};
  }
  virtual void unsubscribe() {}

  /// Calls `told`, from the executor, whenever the server ends the connection in use: it restarted,
  /// say, or another master takes its place. A store without connections never does.
  virtual void on_disconnect(std::function<void()> /*told*/) {}

  /// Whether a connection to it was ever open: it may have read what it was sent, even if it never
  /// answered.
  [[nodiscard]] virtual bool was_reached() const = 0;

  /// Sends what is still to be sent, shuts down the sending half and waits for the server to do the
  /// same, at most until `deadline` (an instant that has passed: send what the socket takes at
  /// once). Nothing may be asked afterwards.
  virtual asio::awaitable<void> close(Instant deadline) = 0;
};

}  // namespace redlock
