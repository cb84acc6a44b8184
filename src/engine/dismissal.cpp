#include "engine/dismissal.hpp"

#include <algorithm>
#include <utility>

#include "core/decision.hpp"
#include "core/protocol.hpp"
#include "core/queue.hpp"
#include "engine/round.hpp"

namespace redlock {
namespace {

/// A waiter that runs polls within the first half, as soon as it is notified.
constexpr Milliseconds leave_timeout = 2 * protocol::notify_timeout;
constexpr Milliseconds ask_interval{100};

using Votes = std::vector<DismissVote>;

std::vector<const Dismissed*> answers_among(const Votes& votes) {
  std::vector<const Dismissed*> answers;
  for (const DismissVote& vote : votes) {
    if (const auto* answer = std::get_if<Dismissed>(&vote)) answers.push_back(answer);
  }
  return answers;
}

/// The ticket that a newcomer would get: all who have joined have smaller ones, also those that a
/// server does not show at the moment.
Ticket newcomers_ticket(const std::vector<const Dismissed*>& answers) {
  std::vector<Milliseconds> times;
  Ticket largest = 0;
  for (const Dismissed* answer : answers) {
    times.push_back(answer->time);
    largest = std::max(largest, answer->max_ticket.value_or(0));
  }
  return next_ticket(std::move(times), largest);
}

/// The answer of the server where most of them are still queued.
const Dismissed& with_most(const std::vector<const Dismissed*>& answers) {
  return **std::ranges::max_element(answers, {}, [](const Dismissed* at) { return at->queued; });
}

}  // namespace

asio::awaitable<Dismissal> dismiss_waiters(ServerSet& server_set, Resource resource,
                                           StopRequest request) {
  DismissRequest question{std::move(resource), std::nullopt, std::move(request)};
  Dismissal result;
  const auto ask_all = [&]() -> asio::awaitable<Votes> {
    const Instant deadline = server_set.clock().now() + server_set.server_timeout();
    const auto ask = [&question, deadline](LockServer& server) {
      return server.dismiss(question, deadline);
    };
    Votes votes = co_await ask_each<DismissVote>(server_set, ask);
    result.faults = faults_among(server_set, [&](std::size_t i) { return &votes[i]; });
    co_return votes;
  };

  Votes votes = co_await ask_all();
  if (answers_among(votes).size() < quorum_of(votes.size())) co_return result;
  question.up_to = newcomers_ticket(answers_among(votes));
  votes = co_await ask_all();
  result.confirmed = answers_among(votes).size() >= quorum_of(votes.size());
  if (!result.confirmed) co_return result;

  const std::size_t concerned = with_most(answers_among(votes)).queued;
  const Instant until = server_set.clock().now() + leave_timeout;
  while (with_most(answers_among(votes)).queued > 0 && server_set.clock().now() < until) {
    co_await sleep_until(server_set.clock(), server_set.clock().now() + ask_interval);
    Votes later = co_await ask_all();
    if (answers_among(later).empty()) break;
    votes = std::move(later);
  }
  const Dismissed last = with_most(answers_among(votes));
  result.waiters.number = concerned - std::min(concerned, last.queued);
  result.waiters.unreached = last.queued;
  result.waiters.first_unreached = last.first_queued;
  co_return result;
}

}  // namespace redlock
