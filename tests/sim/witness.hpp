#pragma once

#include <functional>
#include <memory>

#include "referees.hpp"
#include "store/lock_server.hpp"

namespace redlock::sim {

/// A server as one process sees it: reports the requests of the process and the server's replies to
/// the referee, and changes nothing.
class Witness final : public LockServer {
 public:
  /// `index`: of the server among the configured ones.
  Witness(std::unique_ptr<LockServer> server, Referees& referees, Process& process,
          std::size_t index)
      : server_(std::move(server)), referees_(referees), process_(process), index_(index) {}

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
  void unsubscribe() override;
  [[nodiscard]] bool was_reached() const override { return server_->was_reached(); }
  asio::awaitable<void> close(Instant deadline) override;

 private:
  std::unique_ptr<LockServer> server_;
  Referees& referees_;
  Process& process_;
  std::size_t index_;
};

}  // namespace redlock::sim
