#include "core/queue.hpp"

#include <algorithm>

#include "core/decision.hpp"

namespace redlock {
namespace {

/// How much later than the first waiter the second one, and those further back, poll.
constexpr Milliseconds second_slack{250};
constexpr Milliseconds others_slack = protocol::notify_timeout;

/// Finds slots that one and the same quorum has free. It is not enough that each slot is free on
/// some quorum of its own.
class JointlyFreeSlots {
 public:
  JointlyFreeSlots(const std::vector<const QueueStatus*>& statuses, std::size_t take)
      : statuses_(statuses), take_(take), quorum_(quorum_of(statuses.size())) {}

  /// The lowest `take` slots that one quorum has free; empty if no quorum has that many.
  Slots lowest() {
    search(0, 0, {});
    return lowest_;
  }

 private:
  /// Tries every way to complete the `chosen` servers, which have all of `free` free, to a quorum
  /// with servers from `first` on.
  void search(std::size_t first, std::size_t chosen, const Slots& free) {
    if (chosen > 0 && free.size() < take_) return;
    if (chosen == quorum_) {
      const Slots found(free.begin(), free.begin() + static_cast<std::ptrdiff_t>(take_));
      if (lowest_.empty() || found < lowest_) lowest_ = found;
      return;
    }
    for (std::size_t i = first; i < statuses_.size(); ++i) {
      if (statuses_[i] != nullptr) search(i + 1, chosen + 1, narrowed(free, chosen, i));
    }
  }

  /// The slots of `free` that are free at this server, too; for the first chosen server, all that
  /// are free there.
  [[nodiscard]] Slots narrowed(const Slots& free, std::size_t chosen, std::size_t server) const {
    const std::string& digits = statuses_[server]->free_slots;
    Slots rest;
    for (std::size_t slot = 0; slot < digits.size(); ++slot) {
      const bool is_candidate = chosen == 0 || std::ranges::binary_search(free, slot);
      if (is_candidate && digits[slot] == '1') rest.push_back(slot);
    }
    return rest;
  }

  const std::vector<const QueueStatus*>& statuses_;
  std::size_t take_;
  std::size_t quorum_;
  Slots lowest_;
};

TakenSlots taken_slots_in(const std::vector<const QueueStatus*>& statuses) {
  std::vector<std::size_t> free;  // by slot: how many servers have it free
  for (const QueueStatus* status : statuses) {
    if (status == nullptr) continue;
    const std::string& digits = status->free_slots;
    free.resize(std::max(free.size(), digits.size()));
    for (std::size_t slot = 0; slot < digits.size(); ++slot) {
      if (digits[slot] == '1') ++free[slot];
    }
  }
  const auto taken = std::ranges::count_if(
      free, [&](std::size_t servers) { return servers < quorum_of(statuses.size()); });
  return {static_cast<std::size_t>(taken), free.size()};
}

/// Two waiters that each found room on a quorum have a server in common, and the later one saw the
/// other there. Waiters that join at the same time may each be first at a different server and see
/// the others everywhere else. Then those with larger tickets leave: that is why only the waiters
/// before us count. If all waiters counted, all would leave. With a single server the order of
/// arrival is certain, so all of them count.
Room room_in(const std::vector<const QueueStatus*>& statuses, const std::vector<bool>& granted,
             std::size_t max_waiting) {
  const std::size_t servers = statuses.size();
  std::size_t roomy = 0;
  std::size_t crowded = 0;
  std::size_t full = 0;
  for (std::size_t i = 0; i < servers; ++i) {
    const QueueStatus* status = statuses[i];
    if (status == nullptr || !status->others || !(status->queued || granted[i])) continue;
    ++(*status->others < max_waiting ? roomy : crowded);
    // A grant shows that no waiter comes before us.
    const bool is_behind =
        status->ahead >= max_waiting || (servers == 1 && *status->others >= max_waiting);
    if (is_behind && !granted[i]) ++full;
  }
  if (roomy >= quorum_of(servers)) return Room::enough;
  if (servers - full < quorum_of(servers)) return Room::none;
  return crowded > 0 ? Room::contended : Room::unknown;
}

}  // namespace

QueueView view_of(const std::vector<const QueueStatus*>& statuses, const std::vector<bool>& granted,
                  const QueueDemands& demands) {
  const std::size_t quorum = quorum_of(statuses.size());
  std::vector<Milliseconds> times;
  std::vector<Duration> changes;
  QueueView view;
  std::optional<std::size_t> fewest;
  std::size_t queued = 0;
  std::size_t offered = 0;
  std::size_t cannot_publish = 0;
  std::size_t with_largest = 0;
  Ticket above_all = 0;
  std::size_t not_superseded = 0;
  const QueueStatus* superseder = nullptr;
  for (std::size_t i = 0; i < statuses.size(); ++i) {
    const QueueStatus* status = statuses[i];
    if (status == nullptr) continue;
    times.push_back(status->time);
    above_all = std::max(above_all, status->max_ticket.value_or(0) + 1);
    if (status->queued || granted[i]) ++queued;
    if (status->offered || granted[i]) ++offered;
    if (status->cannot_publish) ++cannot_publish;
    if (status->max_ticket) ++with_largest;
    if (status->superseder.empty()) {
      ++not_superseded;
    } else {
      superseder = status;
    }
    view.newer = view.newer || status->newer;
    view.others = std::max(view.others, status->others.value_or(0));
    fewest = std::min(fewest.value_or(status->ahead), status->ahead);
    if (granted[i]) changes.push_back(Duration::zero());
    if (!granted[i] && status->may_change) changes.push_back(*status->may_change);
    if (status->collector) view.collector = status->collector;
  }
  if (superseder != nullptr && not_superseded < quorum)
    view.superseded_by = superseder->superseded_by.value_or(Owner());
  if (demands.max_waiting) view.room = room_in(statuses, granted, *demands.max_waiting);
  view.ahead = fewest.value_or(0);
  view.queued = queued >= quorum;
  view.offered = offered >= quorum;
  view.has_largest = with_largest >= quorum;
  view.cannot_publish = statuses.size() - cannot_publish < quorum;
  if (times.size() < quorum) return view;
  std::ranges::sort(times);
  view.next_ticket =
      std::max(static_cast<Ticket>(std::max<Milliseconds::rep>(times[times.size() / 2].count(), 0)),
               above_all);
  std::ranges::sort(changes);
  if (changes.size() >= quorum) view.may_change = changes[quorum - 1];
  view.slots = JointlyFreeSlots(statuses, demands.take).lowest();
  view.taken_slots = taken_slots_in(statuses);
  return view;
}

Duration until_next_poll(const QueueView& view) {
  if (!view.may_change) return max_poll_interval;
  const Duration may_change = *view.may_change;
  const std::size_t ahead = view.ahead;
  // We may be the only process that notices that the notified waiter does not poll.
  if (view.offered) return may_change + expiry_slack;
  Duration span = may_change + expiry_slack;
  if (ahead == 1) span = may_change + second_slack;
  if (ahead > 1) {
    // With an interval of n²/2 seconds at position n, the sum from the third position on is below
    // one poll a second.
    const auto position = static_cast<Milliseconds::rep>(std::min<std::size_t>(ahead + 1, 100));
    span = std::max<Duration>(may_change + others_slack, Milliseconds(500 * position * position));
  }
  return std::min<Duration>(span, max_poll_interval);
}

}  // namespace redlock
