#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/lock_server.hpp"
#include "virtual/network.hpp"

namespace redlock::unit {

enum class Question {
  acquire,
  raise_fence,
  extend,
  heal,
  release,
  break_lock,
  inspect,
  ask,
  dismiss,
  list,
  undo,
  leave,
  subscribe
};

/// A server as one client has it: the product's, with a record of what it was asked. A test says
/// how each of its requests fares.
class AskedServer final : public LockServer {
 public:
  struct Asked {
    Question question;
    Instant at;
    std::string token;
  };

  AskedServer(std::unique_ptr<LockServer> server, const Clock& clock)
      : server_(std::move(server)), clock_(clock) {}

  /// All questions, in order; and when those of a kind were asked.
  [[nodiscard]] const std::vector<Asked>& log() const noexcept { return log_; }
  [[nodiscard]] std::vector<Instant> asked(Question question) const;
  [[nodiscard]] std::vector<std::string> tokens(Question question) const;
  /// All questions so far, and their memory.
  void forget() { std::vector<Asked>().swap(log_); }

  sim::Fate fate;  ///< of every request
  /// Of those of a kind, instead. An undo is a release, and a request that is named `undo`.
  std::map<Question, sim::Fate> fate_for;
  std::function<sim::Fate()> random_fate;  ///< instead of both
  Duration extend_steps{};  ///< what an extension takes before it is asked: to connect, say
  std::optional<Instant> close_deadline;  ///< what close() was told

  /// For the connections.
  [[nodiscard]] sim::Fate fate_of(std::string_view request) const;

  [[nodiscard]] const std::string& name() const override { return server_->name(); }
  asio::awaitable<AcquireVote> acquire(AcquireRequest request, Instant deadline) override;
  asio::awaitable<RaiseVote> raise_fence(RaiseRequest request, Instant deadline) override;
  asio::awaitable<ExtendVote> extend(ExtendRequest request, Instant deadline) override;
  asio::awaitable<HealVote> heal(HealRequest request, Instant deadline) override;
  asio::awaitable<ReleaseVote> release(ReleaseRequest request, Instant deadline) override;
  asio::awaitable<BreakVote> break_lock(BreakRequest request, Instant deadline) override;
  asio::awaitable<InspectVote> inspect(Resource resource, std::optional<LeaseId> share,
                                       Instant deadline, InspectScope scope) override;
  asio::awaitable<InspectVote> ask_holder(AskRequest request, Instant deadline) override;
  asio::awaitable<DismissVote> dismiss(DismissRequest request, Instant deadline) override;
  asio::awaitable<Result<LockList, Fault>> list(ListRequest request) override;
  void undo(const Resource& resource, const Token& token, std::optional<Requeue> requeue,
            NotUndone not_undone) override;
  void leave(const Resource& resource, const std::string& waiter) override;
  void leave_late(const Resource& resource, const std::string& waiter) override;
  asio::awaitable<std::optional<Fault>> subscribe(Resource resource, std::string waiter,
                                                  std::function<void(Notification)> notified,
                                                  Instant deadline) override;
  void unsubscribe() override { server_->unsubscribe(); }
  void on_disconnect(std::function<void()> told) override {
    server_->on_disconnect(std::move(told));
  }
  [[nodiscard]] bool was_reached() const override { return server_->was_reached(); }
  asio::awaitable<void> close(Instant deadline) override;

 private:
  void note(Question question, std::string token = {});

  std::unique_ptr<LockServer> server_;
  const Clock& clock_;
  std::vector<Asked> log_;
};

}  // namespace redlock::unit
