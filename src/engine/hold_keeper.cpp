#include "engine/hold_keeper.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "core/decision.hpp"
#include "engine/held_lease.hpp"
#include "engine/round.hpp"

namespace redlock {
namespace {

/// After so many server timeouts a round no longer shows that the hold is not lifted: this process
/// may have been paused. Within them, all of its answers have come.
constexpr int max_view_age = 2;

/// What restores the hold, `elapsed` after the round that found it began; nullopt: it has ended.
/// Without the drift of a lease, as no process relies on the end: 1 % of a day are 14 minutes.
std::optional<HealRequest> heal_request(Resource resource, const FoundHold& found,
                                        Duration elapsed) {
  const auto rest = Ttl::from(found.remaining - elapsed);
  if (!rest) return std::nullopt;
  const Duration age = *found.holder.owner->hold_for - rest->length();
  const HoldCopy& copy = *found.holder.hold;
  return HealRequest{std::move(resource), copy.token, *rest, found.holder.fence.value_or(Fence()),
                     Provenance{age, /*supervised=*/false, copy.record}};
}

/// Whether the server remembers that the hold was lifted.
bool shows_lift(const HealVote& vote) {
  const auto* not_ours = std::get_if<NotOurs>(&vote);
  return not_ours != nullptr && not_ours->why == NotOurs::Why::released;
}

}  // namespace

asio::awaitable<void> keep_hold(ServerSet& server_set, Resource resource,
                                std::vector<ShownLock> shown, Instant t0) {
  const std::optional<FoundHold> found = find_hold(shown);
  if (!found || found->shows < quorum_of(server_set.size())) co_return;
  if (found->is_lifted) {
    (void)co_await lift_hold(server_set, std::move(resource), *found);
    co_return;
  }
  const Instant now = server_set.clock().now();
  if (found->lacking.empty() || now - t0 >= max_view_age * server_set.server_timeout()) co_return;
  const std::optional<HealRequest> request = heal_request(resource, *found, now - t0);
  if (!request) co_return;

  const auto ballot = std::make_shared<Ballot<VoteList<HealVote>>>(server_set);
  const Instant answer_by = now + server_set.server_timeout();
  for (std::size_t i = 0; i < server_set.size(); ++i) {
    if (std::ranges::find(found->lacking, i) == found->lacking.end()) {
      ballot->tally.count(i, Healed{});
      continue;
    }
    ask(server_set, ballot, i, [request = *request, answer_by](LockServer& server) {
      return server.heal(request, answer_by);
    });
  }
  while (!ballot->tally.complete()) co_await ballot->event->wait_until(Instant::max());
  const std::vector<HealVote> votes = ballot->tally.votes();
  if (std::ranges::any_of(votes, shows_lift))
    (void)co_await lift_hold(server_set, std::move(resource), *found);
}

asio::awaitable<LiftResult> lift_hold(ServerSet& server_set, Resource resource, FoundHold hold) {
  HeldLease held(server_set, std::move(resource), hold.holder.hold->token,
                 hold.holder.fence.value_or(Fence()));
  held.lift(hold.longest);
  ReleaseResult result = co_await held.release(/*by_hand=*/true);
  const std::size_t answered = server_set.size() - result.faults.size();
  const bool lifted = answered >= quorum_of(server_set.size());
  co_return LiftResult{lifted, std::move(result.faults)};
}

}  // namespace redlock
