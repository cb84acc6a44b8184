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
  bool was_released = false;         ///< redlock::was_released()
  std::optional<NotOurs> not_ours;   ///< the first such answer
  std::optional<Holder> supervisor;  ///< for ReleaseDecision::supervised
  std::vector<ServerFault> faults;
  bool recorded = false;       ///< a quorum remembers the run that ended with it
  bool left_to_users = false;  ///< a server keeps it for them
};

/// Extends and releases a lease on the servers, in single rounds. The LeaseKeeper, or the user,
/// decides when.
class HeldLease {
 public:
  /// `ttl`: the longest ttl that this process requests; nullopt: another process keeps the lease.
  HeldLease(ServerSet& server_set, Resource resource, Token token, Fence fence, Hold hold = {},
            std::optional<Ttl> ttl = {});

  /// A lease that this process keeps, or uses: then Lease::user is set, all rounds are that user's,
  /// and release() only ends the use.
  HeldLease(ServerSet& server_set, const Lease& lease);

  /// `asked` runs with the stop request each time that an answer to extend() contains one, even if
  /// that answer is late.
  void on_stop_request(std::function<void(const StopRequest&)> asked) { asked_ = std::move(asked); }

  /// One round (PROTOCOL R4, R5), decided as soon as the result is certain, and at `end` at the
  /// latest, when the lease ends for the caller whatever the answers: then there are too few. Each
  /// server has the time of a LockServer's question. Once a quorum has confirmed the lease in this
  /// round, servers that have lost it, or its record, are healed in the background. After release()
  /// no server is asked or healed.
  ///
  /// `by_hand`: the process is about to end, so there is no next round. Slower servers get a little
  /// more time, so that they can be healed if need be.
  asio::awaitable<ExtendResult> extend(Ttl ttl, Instant end = Instant::max(), bool by_hand = false);

  /// Like extend(), for the process that keeps the lease. If a late answer moves claimed_until()
  /// beyond `end` before the decision, returns at once, undecided; the next call goes on with that
  /// round.
  asio::awaitable<ExtendResult> keep(Ttl ttl, Instant end);

  /// Until when a quorum has the lease, by the last answer of each server, whether it came in time
  /// or late: the `late` event is notified when one is late. nullopt if no quorum has it.
  [[nodiscard]] std::optional<Instant> claimed_until() const { return claims_->deadline(); }
  void on_late_answer(std::function<void()> notify) { late_ = std::move(notify); }

  /// Compare-and-delete on every server. A server that refuses is asked again, with back-off.
  /// Waits, within the server timeout, for every server that answered our last question. If the ttl
  /// is known, the ServerSet keeps trying in the background at each server that has not confirmed
  /// the release by then (ServerSet::clear_away). Call it once, and nothing else after it.
  ///
  /// `by_hand` (see ReleaseRequest), if no server was asked before: waits for the decision of a
  /// quorum, and then as long again for the other servers. Those where the lease was not get a
  /// tombstone in a second round.
  /// A lease that no `run` keeps may have users, whatever the terms say.
  asio::awaitable<ReleaseResult> release(bool by_hand, ReleaseTerms terms = {});

  /// Registers with the servers as this user of the lease: the next extension is its first.
  /// `until`: when the lease ends as it is, and so may the entry. `below_guard`: an ancestor that
  /// keeps or uses the lease lives; otherwise the user is refused once the keeper has left.
  void use_as(LeaseUser user, Instant until, bool below_guard) {
    granted_until_ = until;
    user_ = std::move(user);
    is_new_user_ = !below_guard;
  }

  /// The lease is a hold that release() lifts, and that may last for this long somewhere.
  void lift(Duration longest) { lifted_for_ = longest; }

  /// The place of the process that keeps the lease (see Owner::place), once a round showed its
  /// record.
  [[nodiscard]] std::optional<Place> place_of_keeper() const;

  /// From now on no server is healed because of the rounds so far, and their late answers do not
  /// count.
  void end_healing() { *released_ = true; }

 private:
  class ExtendRound;

  std::shared_ptr<ExtendRound> begin_round(Ttl ttl, Instant end);
  ExtendResult conclude(ExtendRound& round);

  ServerSet& server_set_;
  Resource resource_;
  Token token_;
  Fence fence_;
  Hold hold_;
  std::optional<Ttl> ttl_;
  std::optional<LeaseUser> user_;  ///< nullopt: the keeper of the lease, or a user by hand
  Duration lifted_for_{};          ///< see lift()
  bool is_new_user_ = false;       ///< refused where the keeper has left
  Instant granted_until_;          ///< the deadline of the lease as it was granted or inherited
  Provenance provenance_;          ///< what was last known to be stored about the lease
  Instant provenance_at_;          ///< when that was known
  std::function<void(const StopRequest&)> asked_ = [](const StopRequest&) {};
  std::function<void()> late_ = [] {};
  std::shared_ptr<ExtendRound> open_;                    ///< with which keep() goes on
  std::shared_ptr<std::weak_ptr<ExtendRound>> waiting_;  ///< for whose decision keep() waits
  std::shared_ptr<LeaseClaims> claims_;
  std::shared_ptr<bool> released_;  ///< shared with the coroutines in the background
};

}  // namespace redlock
