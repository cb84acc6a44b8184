#include "store/scripted_server.hpp"

namespace redlock {
namespace {

template <class Vote>
const Fault* denial_in(const Vote& vote) {
  const Fault* const fault = std::get_if<Fault>(&vote);
  return fault != nullptr && fault->kind == FaultKind::denied ? fault : nullptr;
}

ExtendVote extend_vote_from(const ScriptReply& reply, const ServerFacts& server) {
  ExtendVote vote = extend_vote(reply);
  if (auto* extended = std::get_if<Extended>(&vote)) extended->server = server;
  if (auto* not_ours = std::get_if<NotOurs>(&vote)) not_ours->server = server;
  return vote;
}

}  // namespace

asio::awaitable<AcquireVote> ScriptedServer::acquire(AcquireRequest request, Instant deadline) {
  AcquireVote vote = acquire_vote(co_await call(acquire_call(request), deadline));
  if (auto* granted = std::get_if<Granted>(&vote)) {
    const Mode& mode = request.mode;
    const std::size_t limit = mode.only.empty() ? mode.slots : mode.only.size();
    if (!granted->slots.empty() && granted->slots.back() >= limit)
      co_return Fault{FaultKind::garbage, "it granted a slot that it was not asked for"};
    granted->server = facts();
  }
  co_return vote;
}

asio::awaitable<RaiseVote> ScriptedServer::raise_fence(RaiseRequest request, Instant deadline) {
  RaiseVote vote = raise_vote(co_await call(raise_fence_call(request), deadline));
  if (auto* raised = std::get_if<Raised>(&vote)) raised->server = facts();
  co_return vote;
}

asio::awaitable<ExtendVote> ScriptedServer::extend(ExtendRequest request, Instant deadline) {
  ScriptCall extension = extend_call(request);
  if (request.late) {
    extension.late = [late = request.late](const Reply& reply, const ServerFacts& server) {
      late(extend_vote_from(reply, server));
    };
  }
  const ScriptReply reply = co_await call(std::move(extension), deadline);
  co_return extend_vote_from(reply, facts());
}

asio::awaitable<HealVote> ScriptedServer::heal(HealRequest request, Instant deadline) {
  co_return heal_vote(co_await call(heal_call(request), deadline));
}

asio::awaitable<ReleaseVote> ScriptedServer::release(ReleaseRequest request, Instant deadline) {
  // An acquire or a heal that is still under way on a late connection must not outlive the lease.
  // Send a copy on such connections only: if the server read a second compare-and-delete first, the
  // one whose answer counts would be answered "gone".
  post_to_late(release_call(request), /*only_unanswered=*/true, request.not_undone);
  ReleaseVote vote = release_vote(co_await call(release_call(request), deadline));
  // A user without the right to record the run can release the lock all the same.
  if (request.run && denial_in(vote) != nullptr) {
    request.run.reset();
    vote = release_vote(co_await call(release_call(request), deadline));
  }
  co_return vote;
}

asio::awaitable<BreakVote> ScriptedServer::break_lock(BreakRequest request, Instant deadline) {
  co_return break_vote(co_await call(break_call(request), deadline));
}

asio::awaitable<InspectVote> ScriptedServer::inspect(Resource resource,
                                                     std::optional<LeaseId> share, Instant deadline,
                                                     InspectScope scope) {
  InspectVote vote = inspect_vote(co_await call(inspect_call(resource, share, scope), deadline));
  std::optional<Fault> unreadable;
  if (const Fault* const denial = denial_in(vote)) {
    scope.runs = RunsTold::none;
    InspectVote rest = inspect_vote(co_await call(inspect_call(resource, share, scope), deadline));
    // If inspecting is denied even without the runs, return the first denial.
    if (std::holds_alternative<Fault>(rest)) co_return vote;
    unreadable = *denial;
    vote = std::move(rest);
  }
  if (auto* free = std::get_if<Free>(&vote)) {
    free->server = facts();
    free->runs.unreadable = std::move(unreadable);
  } else if (auto* taken = std::get_if<Taken>(&vote)) {
    taken->server = facts();
    taken->runs.unreadable = std::move(unreadable);
  }
  co_return vote;
}

asio::awaitable<SkipVote> ScriptedServer::count_skip(Resource resource, std::string why,
                                                     Instant deadline) {
  co_return skip_vote(co_await call(skip_call(resource, std::move(why)), deadline));
}

asio::awaitable<DismissVote> ScriptedServer::dismiss(DismissRequest request, Instant deadline) {
  co_return dismiss_vote(co_await call(dismiss_call(request), deadline));
}

asio::awaitable<InspectVote> ScriptedServer::ask_holder(AskRequest request, Instant deadline) {
  InspectVote vote = ask_vote(co_await call(ask_call(request), deadline));
  if (auto* free = std::get_if<Free>(&vote)) free->server = facts();
  if (auto* taken = std::get_if<Taken>(&vote)) taken->server = facts();
  co_return vote;
}

void ScriptedServer::undo(const Resource& resource, const Token& token,
                          std::optional<Requeue> requeue, NotUndone not_undone) {
  ReleaseRequest request{resource, token};
  request.requeue = std::move(requeue);
  const ScriptCall compare_and_delete = release_call(request);
  post_to_late(compare_and_delete, /*only_unanswered=*/false, not_undone);
  post(compare_and_delete, not_undone);
}

void ScriptedServer::leave(const Resource& resource, const std::string& waiter) {
  leave_late(resource, waiter);
  post(leave_call(resource, waiter), nullptr);
}

void ScriptedServer::leave_late(const Resource& resource, const std::string& waiter) {
  post_to_late(leave_call(resource, waiter), /*only_unanswered=*/false, nullptr);
}

}  // namespace redlock
