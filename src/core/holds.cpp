#include "core/holds.hpp"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "core/decision.hpp"

namespace redlock {
namespace {

/// The lease with a hold's mark that most servers show; nullptr: none has a mark.
const Holder* marked_by_most(const std::vector<ShownLock>& shown) {
  const Holder* most = nullptr;
  std::ptrdiff_t max_times = 0;
  for (const ShownLock& at : shown) {
    if (at.holder == nullptr || !at.holder->hold) continue;
    const auto times = std::ranges::count_if(shown, [&](const ShownLock& other) {
      return other.holder != nullptr && other.holder->id == at.holder->id;
    });
    if (times > max_times) most = at.holder;
    max_times = std::max(max_times, times);
  }
  return most;
}

std::set<LeaseId> ids_of_slots_on_hold(const std::vector<ShownLock>& shown) {
  std::set<LeaseId> ids;
  for (const ShownLock& at : shown) {
    for (const Share& share : at.shares)
      if (share.holder.hold) ids.insert(share.holder.id);
  }
  return ids;
}

/// What the servers show of this share: itself, or the exclusive lease in its way.
std::vector<ShownLock> share_in(const std::vector<ShownLock>& shown, const LeaseId& id) {
  std::vector<ShownLock> found;
  for (const ShownLock& at : shown) {
    const auto share =
        std::ranges::find(at.shares, id, [](const Share& one) { return one.holder.id; });
    const bool is_alone = at.holder != nullptr && !at.holder->shared;
    const Holder* const holder = share != at.shares.end() ? &share->holder
                                 : is_alone               ? at.holder
                                                          : nullptr;
    found.push_back({at.answered, holder});
  }
  return found;
}

/// Whether a server shows this lease as that of a process. Then the mark of another is no proof: a
/// server must not be able to free other leases by it.
bool is_disputed(const std::vector<ShownLock>& shown, const LeaseId& id) {
  return std::ranges::any_of(shown, [&](const ShownLock& at) {
    if (at.holder == nullptr || at.holder->id != id || !at.holder->owner) return false;
    return !at.holder->owner->hold_for && !at.holder->owner->lifted;
  });
}

}  // namespace

std::optional<Duration> hold_remaining(const Holder& holder) {
  if (holder.shared || !holder.owner || !holder.owner->hold_for || !holder.age) return std::nullopt;
  const Duration rest = *holder.owner->hold_for - *holder.age;
  return rest > Duration::zero() ? std::optional(rest) : std::nullopt;
}

std::vector<ShownLock> shown_by(const std::vector<InspectVote>& votes) {
  std::vector<ShownLock> shown;
  for (const InspectVote& vote : votes) {
    const auto* taken = std::get_if<Taken>(&vote);
    ShownLock lock{!std::holds_alternative<Fault>(vote)};
    if (taken != nullptr) {
      lock.holder = &taken->holder;
      lock.shares = taken->parties.first_shares;
    }
    shown.push_back(lock);
  }
  return shown;
}

std::optional<FoundHold> find_hold(const std::vector<ShownLock>& shown) {
  const Holder* const marked = marked_by_most(shown);
  if (marked == nullptr || is_disputed(shown, marked->id)) return std::nullopt;
  FoundHold found{*marked};
  std::vector<Duration> remaining;
  std::vector<Fence> fences;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const Holder* const holder = shown[i].holder;
    if (shown[i].answered && holder == nullptr) found.lacking.push_back(i);
    if (holder == nullptr || holder->id != marked->id) continue;
    ++found.shows;
    if (!holder->owner) found.lacking.push_back(i);
    if (holder->fence) fences.push_back(*holder->fence);
    if (const auto rest = hold_remaining(*holder)) remaining.push_back(*rest);
    found.longest = std::max(found.longest, holder->remaining.value_or(Duration::zero()));
    found.is_lifted = found.is_lifted || (holder->owner && holder->owner->lifted);
  }
  if (remaining.empty()) return std::nullopt;
  found.holder.fence = fence_of(fences, shown.size());
  std::ranges::sort(remaining, std::greater());
  found.remaining = remaining[std::min(quorum_of(shown.size()), remaining.size()) - 1];
  found.longest = std::min<Duration>(std::max(found.longest, remaining.front()), Ttl::max);
  return found;
}

std::vector<FoundHold> find_holds(const std::vector<ShownLock>& shown) {
  std::vector<FoundHold> found;
  if (auto whole = find_hold(shown)) found.push_back(std::move(*whole));
  for (const LeaseId& id : ids_of_slots_on_hold(shown)) {
    auto hold = find_hold(share_in(shown, id));
    if (hold && hold->holder.id == id) found.push_back(std::move(*hold));
  }
  return found;
}

}  // namespace redlock
