#include "engine/hold_keeper.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "core/decision.hpp"
#include "engine/held_lease.hpp"
#include "engine/round.hpp"
#include "support/spawn.hpp"

namespace redlock {
namespace {

/// After so many server timeouts a round no longer shows that the hold is not lifted: this process
/// may have been paused. Within them, all of its answers have come.
constexpr int max_view_age = 2;

/// A younger hold may be that of an attempt under way, which fails and is undone: what is restored
/// after the undo would stay. The process that makes the hold waits for its servers itself.
constexpr std::chrono::seconds min_hold_age{2};

/// What restores the hold, `elapsed` after the round that found it began; nullopt: it has ended.
/// Without the drift of a lease, as no process relies on the end: 1 % of a day are 14 minutes.
std::optional<HealRequest> heal_request(Resource resource, const FoundHold& found,
                                        Duration elapsed) {
  const auto rest = Ttl::from(found.remaining - elapsed);
  if (!rest) return std::nullopt;
  const Duration age = *found.holder.owner->hold_for - rest->length();
  const HoldCopy& copy = *found.holder.hold;
  return HealRequest{std::move(resource),
                     copy.token,
                     *rest,
                     found.holder.fence.value_or(Fence()),
                     Provenance{age, /*supervised=*/false, copy.record},
                     copy.how};
}

/// Whether the server remembers that the hold was lifted, or broken by force.
bool shows_lift(const HealVote& vote) {
  const auto* not_ours = std::get_if<NotOurs>(&vote);
  return not_ours != nullptr && (not_ours->why == NotOurs::Why::released || not_ours->breaker);
}

/// Restores the hold where it is lacking. -> whether a server remembers that it was lifted
asio::awaitable<bool> restore(ServerSet& server_set, FoundHold found, HealRequest request) {
  const auto ballot = std::make_shared<Ballot<VoteList<HealVote>>>(server_set);
  const Instant answer_by = server_set.clock().now() + server_set.server_timeout();
  for (std::size_t i = 0; i < server_set.size(); ++i) {
    if (std::ranges::find(found.lacking, i) == found.lacking.end()) {
      ballot->tally.count(i, Healed{});
      continue;
    }
    ask(server_set, ballot, i,
        [request, answer_by](LockServer& server) { return server.heal(request, answer_by); });
  }
  while (!ballot->tally.complete()) co_await ballot->event->wait_until(Instant::max());
  const std::vector<HealVote> votes = ballot->tally.votes();
  co_return std::ranges::any_of(votes, shows_lift);
}

asio::awaitable<void> restore_or_lift(ServerSet& server_set, Resource resource, FoundHold found,
                                      Instant t0) {
  bool is_lifted = found.is_lifted;
  if (!is_lifted) {
    const Duration elapsed = server_set.clock().now() - t0;
    const std::optional<HealRequest> request = heal_request(resource, found, elapsed);
    const bool is_old = found.holder.age.value_or(Duration::zero()) >= Duration(min_hold_age);
    const bool is_seen_now = elapsed < max_view_age * server_set.server_timeout();
    if (!request || !is_old || !is_seen_now || found.lacking.empty()) co_return;
    is_lifted = co_await restore(server_set, found, *request);
  }
  if (is_lifted) (void)co_await lift_hold(server_set, std::move(resource), std::move(found));
}

}  // namespace

asio::awaitable<void> keep_holds(ServerSet& server_set, Resource resource,
                                 std::vector<ShownLock> shown, Instant t0, Interrupt& interrupt) {
  std::vector<FoundHold> found = find_holds(shown);
  std::erase_if(found, [quorum = quorum_of(server_set.size())](const FoundHold& hold) {
    return hold.shows < quorum;
  });
  if (found.empty()) co_return;
  const std::shared_ptr<Event> changed = server_set.clock().make_event();
  const auto is_done = std::make_shared<bool>(false);
  spawn(server_set.executor(),
        [&server_set, resource, found, t0, changed, is_done]() -> asio::awaitable<void> {
          for (const FoundHold& hold : found)
            co_await restore_or_lift(server_set, resource, hold, t0);
          *is_done = true;
          changed->notify();
        });
  const Interrupt::Listener listener(interrupt, *changed);
  const Instant end = server_set.clock().now() + 2 * server_set.server_timeout();
  bool in_time = true;
  while (in_time && !*is_done && !interrupt.raised()) in_time = co_await changed->wait_until(end);
}

asio::awaitable<LiftResult> lift_hold(ServerSet& server_set, Resource resource, FoundHold hold) {
  HeldLease held(server_set, std::move(resource), hold.holder.hold->token,
                 hold.holder.fence.value_or(Fence()), hold.holder.hold->how);
  held.lift(hold.longest);
  ReleaseResult result = co_await held.release(/*by_hand=*/true);
  const std::size_t answered = server_set.size() - result.faults.size();
  const bool lifted = answered >= quorum_of(server_set.size());
  co_return LiftResult{lifted, std::move(result.faults)};
}

}  // namespace redlock
