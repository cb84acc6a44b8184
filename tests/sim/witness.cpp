#include "witness.hpp"

namespace redlock::sim {

asio::awaitable<AcquireVote> Witness::acquire(AcquireRequest request, Instant deadline) {
  const Token token = request.token;
  const Mode mode = request.mode;
  Referee& referee = referees_.of(request.resource);
  const bool queues = request.entry && request.entry->life > Milliseconds::zero();
  referees_.each([&](Referee& other) {
    if (&other != &referee) other.goes_on(process_);
  });
  std::optional<Ticket> ticket;
  if (request.entry) ticket = request.entry->ticket;
  referee.attempts(process_, token, ticket, queues);
  AcquireVote vote = co_await server_->acquire(std::move(request), deadline);
  if (const auto* granted = std::get_if<Granted>(&vote)) {
    referee.gets_answer(process_, token, granted->queue);
    referee.gets_grant(process_, token, index_, hold_in(mode, granted->slots));
  }
  if (const auto* held = std::get_if<Held>(&vote))
    referee.gets_answer(process_, token, held->queue);
  if (const auto* queued = std::get_if<Queued>(&vote))
    referee.gets_answer(process_, token, queued->queue);
  co_return vote;
}

asio::awaitable<ExtendVote> Witness::extend(ExtendRequest request, Instant deadline) {
  const Token token = request.token;
  Referee& referee = referees_.of(request.resource);
  const Duration began = referee.begins_to_extend(process_, token);
  ExtendVote vote = co_await server_->extend(std::move(request), deadline);
  if (std::holds_alternative<Extended>(vote))
    referee.gets_extension(process_, token, began, index_);
  co_return vote;
}

asio::awaitable<HealVote> Witness::heal(HealRequest request, Instant deadline) {
  referees_.of(request.resource).heals(process_, request.token);
  co_return co_await server_->heal(std::move(request), deadline);
}

// The other requests are only forwarded; some of them are reported to the referee.

asio::awaitable<RaiseVote> Witness::raise_fence(RaiseRequest request, Instant deadline) {
  return server_->raise_fence(std::move(request), deadline);
}
asio::awaitable<ReleaseVote> Witness::release(ReleaseRequest request, Instant deadline) {
  referees_.of(request.resource).releases(request.token);
  return server_->release(std::move(request), deadline);
}
asio::awaitable<BreakVote> Witness::break_lock(BreakRequest request, Instant deadline) {
  return server_->break_lock(std::move(request), deadline);
}
asio::awaitable<InspectVote> Witness::ask_holder(AskRequest request, Instant deadline) {
  return server_->ask_holder(std::move(request), deadline);
}
asio::awaitable<DismissVote> Witness::dismiss(DismissRequest request, Instant deadline) {
  return server_->dismiss(std::move(request), deadline);
}
asio::awaitable<InspectVote> Witness::inspect(Resource resource, std::optional<LeaseId> share,
                                              Instant deadline, InspectScope scope) {
  return server_->inspect(std::move(resource), std::move(share), deadline, std::move(scope));
}
asio::awaitable<Result<LockList, Fault>> Witness::list(ListRequest request) {
  return server_->list(std::move(request));
}
void Witness::undo(const Resource& resource, const Token& token, std::optional<Requeue> requeue,
                   NotUndone not_undone) {
  server_->undo(resource, token, std::move(requeue), std::move(not_undone));
}
void Witness::leave(const Resource& resource, const std::string& waiter) {
  referees_.of(resource).leaves(waiter, index_);
  server_->leave(resource, waiter);
}
void Witness::leave_late(const Resource& resource, const std::string& waiter) {
  referees_.of(resource).leaves(waiter, index_);
  server_->leave_late(resource, waiter);
}
asio::awaitable<std::optional<Fault>> Witness::subscribe(Resource resource, std::string waiter,
                                                         std::function<void(Notification)> notified,
                                                         Instant deadline) {
  auto told = [this, &referee = referees_.of(resource),
               notified = std::move(notified)](Notification notification) {
    referee.gets_notification(process_, index_, notification);
    notified(notification);
  };
  return server_->subscribe(std::move(resource), std::move(waiter), std::move(told), deadline);
}
void Witness::unsubscribe() {
  server_->unsubscribe();
}
asio::awaitable<void> Witness::close(Instant deadline) {
  return server_->close(deadline);
}

}  // namespace redlock::sim
