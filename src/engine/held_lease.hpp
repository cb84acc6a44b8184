#pragma once

#include <asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/decision.hpp"
#include "core/lease.hpp"
#include "engine/server_set.hpp"

namespace redlock {

struct ExtendResult {
  ExtendDecision decision = ExtendDecision::undecided;
  Instant t0;                       ///< before the first byte
  Instant deadline;                 ///< when confirmed: the lease is good until then
  std::optional<NotOurs> not_ours;  ///< the first such answer, if there is one
  std::vector<ServerFault> faults;
};

struct ReleaseResult {
  ReleaseDecision decision = ReleaseDecision::unavailable;
  std::optional<NotOurs> not_ours;   ///< the first such answer
  std::optional<Holder> supervisor;  ///< for ReleaseDecision::supervised
  std::vector<ServerFault> faults;
  bool recorded = false;  ///< a quorum remembers the run that ended with it
};

/// A lease on the servers: extends and releases it, in single rounds. The LeaseKeeper or the user
/// decides when.
class HeldLease {
 public:
  /// `ttl`: the longest ttl that this process asks for; none: another process keeps the lease.
  HeldLease(ServerSet& server_set, Resource resource, Token token, Fence fence, Hold hold = {},
            std::optional<Ttl> ttl = {});

  /// `asked` gets the stop request that an answer to extend() brings, a late one, too; each time.
  void on_stop_request(std::function<void(const StopRequest&)> asked) { asked_ = std::move(asked); }

  /// One round (PROTOCOL R4, R5). It is decided as soon as the result is certain, within the server
  /// timeout and not after `end`, when the lease ends for the caller whatever the answers. Servers
  /// that say they have no such lease are healed in the background, once a quorum has confirmed the
  /// lease in this very round. After release() nothing is healed or asked any more.
  /// `by_hand`: the process is about to end, so there is no next round. Slower servers get a moment
  /// more, so that they can be healed if they need it.
  asio::awaitable<ExtendResult> extend(Ttl ttl, Instant end = Instant::max(), bool by_hand = false);

  /// Compare-and-delete on every server. A server that refuses is asked again, with back-off,
  /// within the server timeout. With a known ttl the server_set continues in the background where
  /// the release is not confirmed by then (ServerSet::clear_away). Waits for every server that
  /// answered our last question, within the server timeout.
  /// `by_hand` (see ReleaseRequest), when nothing was asked before: waits for the decision of a
  /// quorum, and for the rest as long again as that took. Call it once, and nothing else after it.
  /// `expire_in` more than zero: the lease stays and expires after this time.
  /// `finished`: the owner record while the lease is kept.
  /// `run`: what the servers are to remember of the run that ends with it; its fence is filled in.
  asio::awaitable<ReleaseResult> release(bool by_hand, Duration expire_in = Duration::zero(),
                                         std::optional<Owner> finished = std::nullopt,
                                         std::optional<RunRecord> run = std::nullopt);

 private:
  /// What server `server` may still have of the release that began at t0. Requires a ttl_.
  [[nodiscard]] Leftover leftover_at(std::size_t server, Instant t0, Duration expire_in,
                                     const std::optional<RunRecord>& run) const;

  /// Repeats the release that began at t0, in the background, at each server whose vote does not
  /// show that the lease is gone. Requires a ttl_.
  void clear_away_leftovers(const std::vector<ReleaseVote>& votes, Instant t0, Duration expire_in,
                            const std::optional<RunRecord>& run);

  ServerSet& server_set_;
  Resource resource_;
  Token token_;
  Fence fence_;
  Hold hold_;
  std::optional<Ttl> ttl_;
  std::function<void(const StopRequest&)> asked_ = [](const StopRequest&) {};
  std::shared_ptr<bool> released_;  ///< shared with the coroutines in the background
};

}  // namespace redlock
