#pragma once

#include "store/lock_server.hpp"
#include "store/script_votes.hpp"

namespace redlock {

/// A LockServer for everything that runs the scripts: derived classes only carry calls and replies.
class ScriptedServer : public LockServer {
 public:
  asio::awaitable<AcquireVote> acquire(AcquireRequest request, Instant deadline) final;
  asio::awaitable<RaiseVote> raise_fence(RaiseRequest request, Instant deadline) final;
  asio::awaitable<ExtendVote> extend(ExtendRequest request, Instant deadline) final;
  asio::awaitable<HealVote> heal(HealRequest request, Instant deadline) final;
  asio::awaitable<ReleaseVote> release(ReleaseRequest request, Instant deadline) final;
  asio::awaitable<BreakVote> break_lock(BreakRequest request, Instant deadline) final;
  asio::awaitable<InspectVote> inspect(Resource resource, std::optional<LeaseId> share, Instant deadline) final;
  void undo(const Resource& resource, const Token& token, std::optional<Requeue> requeue = std::nullopt,
                 NotUndone not_undone = nullptr) final;
  void leave(const Resource& resource, const std::string& waiter) final;

 protected:
  /// Runs the script once; answers by `deadline`. An error reply of the server comes back as a Fault.
  virtual asio::awaitable<ScriptReply> call(ScriptCall call, Instant deadline) = 0;

  /// What the server that gave the last reply says of itself.
  [[nodiscard]] virtual ServerFacts facts() const { return {}; }

  /// Sends the call behind everything that was asked on the connection in use, or over another one when that
  /// broke. Nobody waits for the answer; `not_undone` may be null.
  virtual void post(ScriptCall call, NotUndone not_undone) = 0;

  /// The same on every connection that ran out of time and may still deliver what was asked on it. `only_unanswered`: not where the acquire
  /// (or heal) of this token was answered; its effect can be undone anywhere.
  virtual void post_to_late(ScriptCall call, bool only_unanswered, NotUndone not_undone) = 0;
};

}  // namespace redlock
