#pragma once

#include <asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "core/decision.hpp"
#include "core/lease.hpp"
#include "engine/server_set.hpp"

namespace redlock {

struct ExtendResult {
  ExtendDecision decision = ExtendDecision::undecided;
  Instant t0;                       ///< before the first byte; when confirmed, the lease is good until deadline(t0, ttl)
  std::optional<NotOurs> not_ours;  ///< the first such answer, when there was one
  std::vector<ServerFault> faults;
};

struct ReleaseResult {
  ReleaseDecision decision = ReleaseDecision::unavailable;
  std::optional<NotOurs> not_ours;   ///< the first such answer
  std::optional<Holder> supervisor;  ///< for ReleaseDecision::supervised
  std::vector<ServerFault> faults;
};

/// A lease at the servers: extend it, release it. Rounds only; when to do what is the LeaseKeeper's matter, or the user's.
class HeldLease {
 public:
  /// `ttl`: the longest that this process asks for; nothing: another process keeps the lease.
  HeldLease(ServerSet& server_set, Resource resource, Token token, Fence fence, Hold hold = {}, std::optional<Ttl> ttl = {});

  /// One round (PROTOCOL R4, R5): decided as soon as it is certain, within the server timeout and not after `end`, when the lease is over
  /// for the caller whatever the answers. Servers that say they have no such lease get it back, in the background, once a quorum confirmed
  /// it in this very round; never after release(), when nothing is asked any more.
  /// `by_hand`: the process is about to end, so there is no next round; slower servers get a moment more, to be healed if they need it.
  asio::awaitable<ExtendResult> extend(Ttl ttl, Instant end = Instant::max(), bool by_hand = false);

  /// Compare-and-delete everywhere. A server that refuses is asked again, with back-off, within the server timeout; with a known ttl
  /// the server_set goes on in the background where it is not confirmed then (ServerSet::clear_away). Waits for every server that answered
  /// our last question, within the server timeout. `by_hand` (see ReleaseRequest), when nothing was asked before: for the decision of a
  /// quorum, and for the rest as long again as that took. Notification once, and nothing after it. `keep` more than zero: the lease is not given to
  /// others at once, but ends by itself after so long. `repeat_until`: a refused release is not repeated for longer, as when others are to
  /// be released behind it. `finished`: the owner record that stands there while it is kept.
  asio::awaitable<ReleaseResult> release(bool by_hand, Duration keep = Duration::zero(), Instant repeat_until = Instant::max(),
                                         std::optional<Owner> finished = std::nullopt);

 private:
  struct Shared;  ///< with the coroutines in the background

  ServerSet& server_set_;
  Resource resource_;
  Token token_;
  Fence fence_;
  Hold hold_;
  std::optional<Ttl> ttl_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace redlock
