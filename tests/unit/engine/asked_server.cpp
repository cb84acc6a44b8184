#include "asked_server.hpp"

#include <utility>

namespace redlock::unit {
namespace {

std::optional<Question> question_named(std::string_view request) {
  static const std::map<std::string_view, Question> named{
      {"acquire", Question::acquire},     {"raise_fence", Question::raise_fence},
      {"extend", Question::extend},       {"heal", Question::heal},
      {"release", Question::release},     {"break_lock", Question::break_lock},
      {"inspect", Question::inspect},     {"ask", Question::ask},
      {"SCAN", Question::list},           {"undo", Question::undo},
      {"leave", Question::leave},         {"dismiss", Question::dismiss},
      {"SUBSCRIBE", Question::subscribe}, {"message", Question::subscribe}};
  const auto found = named.find(request);
  return found == named.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace

sim::Fate AskedServer::fate_of(std::string_view request) const {
  const auto question = question_named(request);
  if (!question) return {};
  if (random_fate) return random_fate();
  const auto found = fate_for.find(*question);
  return found == fate_for.end() ? fate : found->second;
}

void AskedServer::note(Question question, std::string token) {
  log_.push_back({question, clock_.now(), std::move(token)});
}

std::vector<Instant> AskedServer::asked(Question question) const {
  std::vector<Instant> times;
  for (const Asked& asked : log_) {
    if (asked.question == question) times.push_back(asked.at);
  }
  return times;
}

std::vector<std::string> AskedServer::tokens(Question question) const {
  std::vector<std::string> tokens;
  for (const Asked& asked : log_) {
    if (asked.question == question) tokens.push_back(asked.token);
  }
  return tokens;
}

asio::awaitable<AcquireVote> AskedServer::acquire(AcquireRequest request, Instant deadline) {
  note(Question::acquire, request.token.secret());
  return server_->acquire(std::move(request), deadline);
}

asio::awaitable<RaiseVote> AskedServer::raise_fence(RaiseRequest request, Instant deadline) {
  note(Question::raise_fence, request.token.secret());
  return server_->raise_fence(std::move(request), deadline);
}

asio::awaitable<ExtendVote> AskedServer::extend(ExtendRequest request, Instant deadline) {
  note(Question::extend, request.token.secret());
  if (extend_steps > Duration::zero()) co_await sleep_until(clock_, clock_.now() + extend_steps);
  co_return co_await server_->extend(std::move(request), deadline);
}

asio::awaitable<HealVote> AskedServer::heal(HealRequest request, Instant deadline) {
  note(Question::heal, request.token.secret());
  return server_->heal(std::move(request), deadline);
}

asio::awaitable<ReleaseVote> AskedServer::release(ReleaseRequest request, Instant deadline) {
  note(Question::release, request.token.secret());
  return server_->release(std::move(request), deadline);
}

asio::awaitable<BreakVote> AskedServer::break_lock(BreakRequest request, Instant deadline) {
  note(Question::break_lock);
  return server_->break_lock(std::move(request), deadline);
}

asio::awaitable<InspectVote> AskedServer::inspect(Resource resource, std::optional<LeaseId> share,
                                                  Instant deadline, InspectScope scope) {
  note(Question::inspect);
  return server_->inspect(std::move(resource), std::move(share), deadline, std::move(scope));
}

asio::awaitable<InspectVote> AskedServer::ask_holder(AskRequest request, Instant deadline) {
  note(Question::ask);
  return server_->ask_holder(std::move(request), deadline);
}

asio::awaitable<DismissVote> AskedServer::dismiss(DismissRequest request, Instant deadline) {
  note(Question::dismiss);
  return server_->dismiss(std::move(request), deadline);
}

asio::awaitable<Result<LockList, Fault>> AskedServer::list(ListRequest request) {
  note(Question::list);
  return server_->list(std::move(request));
}

void AskedServer::undo(const Resource& resource, const Token& token, std::optional<Requeue> requeue,
                       NotUndone not_undone) {
  note(Question::undo, token.secret());
  server_->undo(resource, token, std::move(requeue), std::move(not_undone));
}

void AskedServer::leave(const Resource& resource, const std::string& waiter) {
  note(Question::leave);
  server_->leave(resource, waiter);
}

void AskedServer::leave_late(const Resource& resource, const std::string& waiter) {
  server_->leave_late(resource, waiter);
}

asio::awaitable<std::optional<Fault>> AskedServer::subscribe(
    Resource resource, std::string waiter, std::function<void(Notification)> notified,
    Instant deadline) {
  note(Question::subscribe);
  return server_->subscribe(std::move(resource), std::move(waiter), std::move(notified), deadline);
}

asio::awaitable<void> AskedServer::close(Instant deadline) {
  close_deadline = deadline;
  return server_->close(deadline);
}

}  // namespace redlock::unit
