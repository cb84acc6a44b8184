#pragma once

#include <asio/awaitable.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/queue.hpp"
#include "core/mode.hpp"
#include "core/types.hpp"
#include "core/vote.hpp"
#include "support/boot_clock.hpp"
#include "support/result.hpp"

namespace redlock {

/// A waiter's entry in the line at one server.
struct QueueEntry {
  std::string id;  ///< random; proves nothing
  Ticket ticket;
  bool polls;         ///< it hears no calls, so nobody waits for it longer than for its next look
  Milliseconds life;  ///< it is given up when it has not looked for so long
};

struct AcquireRequest {
  Resource resource;
  Token token;
  Ttl ttl;
  Owner owner;
  Mode mode{};
  std::optional<std::size_t> slot{};  ///< the one wanted, of several; nothing: the lowest that is free
  std::optional<QueueEntry> entry{};   ///< what to put in line if it is refused; nothing: we do not wait, and only enter where nobody does
};

/// What to leave behind when an attempt is taken back.
struct Requeue {
  QueueEntry entry;
  Mode mode;
  Owner owner;
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
  std::optional<std::size_t> slot{};  ///< a lease in another slot is not ours
  Fence fence{};                      ///< the lease's, for servers that granted it late with another; 0: not known
};

struct HealRequest {
  Resource resource;
  Token token;
  Ttl ttl;
  Fence fence;
  Provenance provenance;  ///< as a server that still has the lease told it
  Hold hold{};
};

/// What becomes of an undo that nobody waits for: called, at most once for each connection, when the server
/// refused it, or when the connection ended too soon to know and the lease may be there (R3).
using NotUndone = std::function<void()>;

struct ReleaseRequest {
  Resource resource;
  Token token;
  bool by_hand =
      false;        ///< asked for by somebody else than the process that keeps the lease: a `run`'s lease is refused, a tombstone is left
  Duration keep{};  ///< more than zero: the key is not deleted, but ends by itself after so long
  std::optional<Requeue> requeue{};  ///< where a failed attempt waits on
  NotUndone not_undone{};            ///< of what earlier connections may still deliver
  std::optional<Owner> finished{};   ///< with `keep`: what the owner record says from then on
};

struct BreakRequest {
  Resource resource;
  std::optional<Fence> only_if{};  ///< only the lease with this fence
  Owner breaker{};                 ///< who breaks it, with the reason as the note
};

/// The locks of one server.
struct LockList {
  std::vector<Resource> resources;
  std::vector<Fault> skipped;  ///< what may be locks, too, and could not be read, one by one
};

/// The port to one server: one vote. What the engine knows of Redis, of a file on this host, or of a simulation.
///
/// Each question is put once, before `deadline`, and always answered by then: a server's silence is a Fault, never an exception.
/// Questions keep their order on the way to the server, as long as its connection lives. Requests are copied, so they may be temporaries.
/// Single-threaded. The server must outlive the questions that are under way.
class LockServer {
 public:
  virtual ~LockServer() = default;

  /// For people and for fingerprints: the address without user or password, e.g. `redis://10.0.0.1:6379/2`.
  [[nodiscard]] virtual const std::string& name() const = 0;

  virtual asio::awaitable<AcquireVote> acquire(AcquireRequest request, Instant deadline) = 0;
  virtual asio::awaitable<RaiseVote> raise_fence(RaiseRequest request, Instant deadline) = 0;
  virtual asio::awaitable<ExtendVote> extend(ExtendRequest request, Instant deadline) = 0;
  virtual asio::awaitable<HealVote> heal(HealRequest request, Instant deadline) = 0;
  virtual asio::awaitable<ReleaseVote> release(ReleaseRequest request, Instant deadline) = 0;
  virtual asio::awaitable<BreakVote> break_lock(BreakRequest request, Instant deadline) = 0;
  /// `share`: the id of a lease; if it is one share of several, the holder is that share.
  virtual asio::awaitable<InspectVote> inspect(Resource resource, std::optional<LeaseId> share, Instant deadline) = 0;

  /// Every resource that has an owner record here: locked by this tool now or until a moment ago,
  /// and what could not be read. A fault when nothing can be told.
  virtual asio::awaitable<Result<LockList, Fault>> list(Instant deadline) = 0;

  /// Takes back whatever an acquire or a heal with this token did or may still do here: a compare-and-delete on every connection that
  /// carried one, behind it. Returns at once.
  virtual void undo(const Resource& resource, const Token& token, std::optional<Requeue> requeue = std::nullopt,
                         NotUndone not_undone = nullptr) = 0;

  /// Takes a waiter out of line, behind whatever put it there. Returns at once; nobody hears the answer.
  virtual void leave(const Resource& resource, const std::string& waiter) = 0;

  /// Has `notified` called, from the executor, for what a waiter of the resource is told; once this has returned without a fault nothing is
  /// missed, until Notification::disconnected says so, or unsubscribe(). One waiter at a time. A store that cannot notify says so; its waiters poll.
  virtual asio::awaitable<std::optional<Fault>> subscribe(Resource /*resource*/, std::string /*waiter*/,
                                                       std::function<void(Notification)> /*notified*/, Instant /*deadline*/) {
    co_return Fault{FaultKind::misconfigured, "it cannot notify waiters"};
  }
  virtual void unsubscribe() {}

  /// Sends what is still to be sent, ends the sending half and waits for the server to do the same, at most until `deadline`
  /// (an instant that has passed: send what the socket takes at once). Nothing may be asked afterwards.
  virtual asio::awaitable<void> close(Instant deadline) = 0;
};

}  // namespace redlock
