#include "engine/release_round.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/backoff.hpp"
#include "core/decision.hpp"
#include "engine/round.hpp"
#include "store/script_calls.hpp"

namespace redlock {
namespace {

/// How long a server may take from reading an acquire to answering it. If the client has closed the
/// connection by then, the server drops the release that follows.
constexpr Milliseconds max_execution{3000};

/// One release at every server, and what becomes of it.
class ReleaseRound {
 public:
  /// `retention`: how long a server may keep the lease from now on; nullopt: unknown, so nothing is
  /// repeated after the round.
  ReleaseRound(ServerSet& server_set, ReleaseRequest request, std::optional<Duration> retention)
      : server_set_(server_set),
        request_(std::move(request)),
        retention_(retention),
        ballot_(std::make_shared<ReleaseBallot>(server_set)) {
    // A release by hand is our first question, so no server is known to answer until it refuses.
    for (std::size_t i = 0; i < server_set_.size(); ++i)
      ballot_->awaited.push_back(!request_.by_hand && server_set_.answered(i));
  }

  /// Ends within the server timeout.
  asio::awaitable<std::vector<ReleaseVote>> run() {
    for (std::size_t i = 0; i < server_set_.size(); ++i) ask_one(i);
    co_await settled();
    const Instant timeout = end_of_lingering(server_set_.clock(), request_.as_of);
    bool in_time = request_.by_hand;
    while (in_time && !ballot_->tally.complete())
      in_time = co_await ballot_->event->wait_until(timeout);
    co_await settled();  // a refusal meanwhile may have reopened the question
    std::vector<ReleaseVote> votes = ballot_->votes();
    if (retention_) repeat_where_unconfirmed(votes);
    co_return votes;
  }

 private:
  struct ReleaseBallot : Ballot<VoteList<ReleaseVote>> {
    explicit ReleaseBallot(const ServerSet& server_set)
        : Ballot(server_set), refusals(server_set.size()) {}

    /// Whether every awaited server has voted, and the votes decide.
    [[nodiscard]] bool is_settled() const {
      if (tally.complete()) return true;
      for (std::size_t i = 0; i < awaited.size(); ++i) {
        if (awaited[i] && !tally.has(i)) return false;
      }
      return decide_release(tally.votes()) != ReleaseDecision::unavailable;
    }

    /// A server that refused and has been silent since may still hold the lease.
    [[nodiscard]] std::vector<ReleaseVote> votes() const {
      std::vector<ReleaseVote> votes = tally.votes();
      for (std::size_t i = 0; i < votes.size(); ++i) {
        if (refusals[i] && !is_answer(votes[i])) votes[i] = *refusals[i];
      }
      return votes;
    }

    std::vector<bool> awaited;
    std::vector<std::optional<Fault>> refusals;
  };

  void ask_one(std::size_t server) {
    ReleaseRequest request = request_;
    if (retention_)
      request.not_undone = [&server_set = server_set_, leftover = leftover_at(server)] {
        server_set.clear_away(leftover);
      };
    const auto question = [&server_set = server_set_, ballot = ballot_, server,
                           request](LockServer& at) {
      return repeat_refused(server_set, at, ballot, server, request);
    };
    ask(server_set_, std::shared_ptr<Ballot<VoteList<ReleaseVote>>>(ballot_), server, question);
  }

  /// Releases at one server. A refusal proves that the server did not act, so the question may be
  /// repeated, and the later answer counts. After silence it is not repeated here: an answer of
  /// "gone" might be the effect of the first question.
  static asio::awaitable<ReleaseVote> repeat_refused(ServerSet& server_set, LockServer& at,
                                                     std::shared_ptr<ReleaseBallot> ballot,
                                                     std::size_t server, ReleaseRequest request) {
    const Clock& clock = server_set.clock();
    const Instant answer_by = request.as_of + server_set.server_timeout();
    for (unsigned k = 0;; ++k) {
      const ReleaseRequest now = as_of(request, clock.now());
      const ReleaseVote vote = co_await at.release(now, answer_by);
      const auto* fault = std::get_if<Fault>(&vote);
      if (fault == nullptr || !fault->refused) co_return vote;
      const Instant next = clock.now() + unavailable_delay(k, server_set.random());
      if (next >= answer_by) co_return vote;
      ballot->awaited[server] = true;
      ballot->refusals[server] = *fault;
      co_await sleep_until(clock, next);
    }
  }

  asio::awaitable<void> settled() {
    while (!ballot_->is_settled()) co_await ballot_->event->wait_until(Instant::max());
  }

  /// What the server may still have after the release.
  [[nodiscard]] Leftover leftover_at(std::size_t server) const {
    return {server, request_, request_.as_of + *retention_, !fits_into_one_read(request_.resource)};
  }

  /// Repeats the release, in the background, at each server whose vote does not show that the lease
  /// is gone.
  void repeat_where_unconfirmed(const std::vector<ReleaseVote>& votes) {
    for (std::size_t i = 0; i < votes.size(); ++i) {
      if (is_final(votes[i])) continue;
      const bool never_answered = !server_set_.ever_answered(i);
      if (never_answered && !server_set_.server(i).was_reached()) continue;
      Leftover leftover = leftover_at(i);
      // If the server has read the acquire by now, it will answer it within max_execution. If it
      // has not, it will read the release together with it.
      if (never_answered && !leftover.unread)
        leftover.until = std::min(leftover.until, request_.as_of + max_execution);
      leftover.unread = leftover.unread || never_answered;
      server_set_.clear_away(std::move(leftover));
    }
  }

  ServerSet& server_set_;
  ReleaseRequest request_;
  std::optional<Duration> retention_;
  std::shared_ptr<ReleaseBallot> ballot_;
};

bool is_not_there(const ReleaseVote& vote) {
  const auto* not_ours = std::get_if<NotOurs>(&vote);
  return not_ours != nullptr && not_ours->why != NotOurs::Why::released;
}

/// For how long the servers had the lease that was released, at most.
Duration max_rest(const std::vector<ReleaseVote>& votes) {
  Duration rest{};
  for (const ReleaseVote& vote : votes) {
    const auto* released = std::get_if<Released>(&vote);
    if (released != nullptr) rest = std::max(rest, released->rest);
  }
  return rest;
}

/// After a release that did not know for how long the servers have the lease, as its users or a
/// release by hand do not tell: makes those where it was not remember the release for as long.
asio::awaitable<void> leave_tombstones(ServerSet& server_set, ReleaseRequest request,
                                       const std::vector<ReleaseVote>& votes) {
  const auto ballot = std::make_shared<Ballot<VoteList<ReleaseVote>>>(server_set);
  const Instant now = server_set.clock().now();
  const Instant answer_by = now + server_set.server_timeout();
  for (std::size_t i = 0; i < votes.size(); ++i) {
    if (!is_not_there(votes[i])) {
      ballot->tally.count(i, votes[i]);
      continue;
    }
    ask(server_set, ballot, i, [request = as_of(request, now), answer_by](LockServer& server) {
      return server.release(request, answer_by);
    });
  }
  while (!ballot->tally.complete()) co_await ballot->event->wait_until(Instant::max());
}

}  // namespace

asio::awaitable<std::vector<ReleaseVote>> release_at_all(ServerSet& server_set,
                                                         ReleaseRequest request,
                                                         std::optional<Duration> retention,
                                                         bool leaves_tombstones) {
  ReleaseRound round(server_set, request, retention);
  std::vector<ReleaseVote> votes = co_await round.run();
  const bool is_done = decide_release(votes) == ReleaseDecision::released;
  const Duration rest = max_rest(votes);
  if (leaves_tombstones && is_done && rest > request.tombstone_life) {
    request.tombstone_life = rest;
    co_await leave_tombstones(server_set, std::move(request), votes);
  }
  co_return votes;
}

}  // namespace redlock
