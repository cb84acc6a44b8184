#pragma once

#include "store/lock_server.hpp"
#include "store/script_calls.hpp"
#include "store/script_votes.hpp"

namespace redlock {

/// The LockServer of every store that runs the scripts. Derived classes only transport calls and
/// replies.
class ScriptedServer : public LockServer {
 public:
  asio::awaitable<AcquireVote> acquire(AcquireRequest request, Instant deadline) final;
  asio::awaitable<RaiseVote> raise_fence(RaiseRequest request, Instant deadline) final;
  asio::awaitable<ExtendVote> extend(ExtendRequest request, Instant deadline) final;
  asio::awaitable<HealVote> heal(HealRequest request, Instant deadline) final;
  asio::awaitable<ReleaseVote> release(ReleaseRequest request, Instant deadline) final;
  asio::awaitable<BreakVote> break_lock(BreakRequest request, Instant deadline) final;
  asio::awaitable<InspectVote> inspect(Resource resource, std::optional<LeaseId> share,
                                       Instant deadline, InspectScope scope = {}) final;
  asio::awaitable<SkipVote> count_skip(Resource resource, std::string why, Instant deadline) final;
  asio::awaitable<DismissVote> dismiss(DismissRequest request, Instant deadline) final;
  asio::awaitable<InspectVote> ask_holder(AskRequest request, Instant deadline) final;
  void undo(const Resource& resource, const Token& token,
            std::optional<Requeue> requeue = std::nullopt, NotUndone not_undone = nullptr) final;
  void leave(const Resource& resource, const std::string& waiter) final;
  void leave_late(const Resource& resource, const std::string& waiter) final;

 protected:
  /// Runs the script once; answers by `deadline`. An error reply of the server is returned as a
  /// Fault.
  virtual asio::awaitable<ScriptReply> call(ScriptCall call, Instant deadline) = 0;

  /// The facts that the server of the last reply reports about itself.
  [[nodiscard]] virtual ServerFacts facts() const { return {}; }

  /// Sends the call after all questions on the connection in use, or over another connection if
  /// that one broke. Does not wait for the answer. `not_undone` may be null.
  virtual void post(const ScriptCall& call, const NotUndone& not_undone) = 0;

  /// Sends the call on every connection that missed a deadline and may still deliver its questions.
  /// `only_unanswered`: skips connections on which the acquire (or heal) of this token was
  /// answered, since its effect can be undone over any connection.
  virtual void post_to_late(const ScriptCall& call, bool only_unanswered,
                            const NotUndone& not_undone) = 0;
};

}  // namespace redlock
