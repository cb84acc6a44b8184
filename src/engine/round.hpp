#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "engine/server_set.hpp"
#include "engine/vote_trace.hpp"
#include "support/spawn.hpp"
#include "support/trace.hpp"

namespace redlock {

/// The votes of a round as they arrive. Shared by the coroutine that decides and those that ask, so
/// that a vote that comes after the decision is still counted.
template <class Tally>
struct Ballot {
  /// `more`: the tally's constructor arguments after the number of servers.
  template <class... More>
  explicit Ballot(const ServerSet& server_set, More... more)
      : tally(server_set.size(), more...), event(server_set.clock().make_event()) {}

  Tally tally;
  std::unique_ptr<Event> event;  ///< notified at every vote
};

/// A tally without a decision: it only collects every server's vote.
template <class Vote>
class VoteList {
 public:
  explicit VoteList(std::size_t servers) : votes_(servers) {}

  void count(std::size_t server, Vote vote) {
    if (!votes_[server]) ++in_;
    votes_[server] = std::move(vote);
  }

  [[nodiscard]] bool complete() const noexcept { return in_ == votes_.size(); }
  [[nodiscard]] bool has(std::size_t server) const { return votes_[server].has_value(); }

  /// All votes. A missing vote counts as a silent server's.
  [[nodiscard]] std::vector<Vote> votes() const {
    std::vector<Vote> all;
    for (const auto& vote : votes_)
      all.push_back(vote ? *vote : Vote(Fault{FaultKind::silent, "no answer yet"}));
    return all;
  }

 private:
  std::vector<std::optional<Vote>> votes_;
  std::size_t in_ = 0;
};

/// Until when a process that is about to end waits for servers slower than the quorum, which has
/// decided by now: as long again as that took since `t0`, but at least so long that scheduling
/// alone does not make a server late.
inline Instant end_of_lingering(const Clock& clock, Instant t0) {
  constexpr Milliseconds min_lingering{20};
  const Instant now = clock.now();
  return now + std::max<Duration>(now - t0, min_lingering);
}

/// Whether the server answered at all.
template <class Vote>
bool is_answer(const Vote& vote) {
  const auto* fault = std::get_if<Fault>(&vote);
  return fault == nullptr || fault->kind != FaultKind::silent;
}

/// Whether repeating the release cannot change the result: it has been done, or we lack the rights.
inline bool is_final(const ReleaseVote& vote) {
  const auto* fault = std::get_if<Fault>(&vote);
  return fault == nullptr || fault->kind == FaultKind::denied ||
         fault->kind == FaultKind::misconfigured;
}

/// Asks one server in the background. `question(server)` returns an awaitable vote; `then(vote)`
/// runs after the vote is counted.
template <class Tally, class Question, class Then>
void ask(ServerSet& server_set, std::shared_ptr<Ballot<Tally>> ballot, std::size_t index,
         Question question, Then then) {
  server_set.note_question(index);
  spawn(server_set.executor(),
        [&server_set, ballot = std::move(ballot), index, question = std::move(question),
         then = std::move(then)]() -> asio::awaitable<void> {
          auto vote = co_await question(server_set.server(index));
          if (is_traced()) trace("vote", server_set.server(index).name() + ": " + vote_text(vote));
          const auto* fault = std::get_if<Fault>(&vote);
          server_set.note_answer(index, fault != nullptr ? std::optional(*fault) : std::nullopt);
          ballot->tally.count(index, vote);
          ballot->event->notify();
          then(vote);
        });
}

template <class Tally, class Question>
void ask(ServerSet& server_set, std::shared_ptr<Ballot<Tally>> ballot, std::size_t index,
         Question question) {
  ask(server_set, std::move(ballot), index, std::move(question), [](const auto&) {});
}

/// Asks every server, and waits for all votes.
template <class Vote, class Question>
asio::awaitable<std::vector<Vote>> ask_each(ServerSet& server_set, Question question) {
  const auto ballot = std::make_shared<Ballot<VoteList<Vote>>>(server_set);
  for (std::size_t i = 0; i < server_set.size(); ++i) ask(server_set, ballot, i, question);
  while (!ballot->tally.complete()) co_await ballot->event->wait_until(Instant::max());
  co_return ballot->tally.votes();
}

/// The faults among the votes, with their servers' names. `vote_of(i)`: a pointer to the vote of
/// server i, or nullptr.
template <class VoteOf>
std::vector<ServerFault> faults_among(const ServerSet& server_set, VoteOf vote_of) {
  std::vector<ServerFault> faults;
  for (std::size_t i = 0; i < server_set.size(); ++i) {
    const auto* vote = vote_of(i);
    if (vote == nullptr) continue;
    if (const auto* fault = std::get_if<Fault>(vote))
      faults.push_back({server_set.server(i).name(), *fault});
  }
  return faults;
}

}  // namespace redlock
