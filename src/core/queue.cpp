#include "core/queue.hpp"

#include <algorithm>
#include <functional>

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

/// The statuses that servers reported. Each function answers one question about the queue.
class Reports {
 public:
  struct Report : QueueStatus {
    bool granted;  ///< the server granted the lock, and that grant is being undone
  };

  Reports(const std::vector<const QueueStatus*>& statuses, const std::vector<bool>& granted)
      : servers_(statuses.size()) {
    for (std::size_t i = 0; i < servers_; ++i) {
      if (statuses[i] != nullptr) reports_.push_back({*statuses[i], granted[i]});
    }
  }

  [[nodiscard]] bool from_quorum() const { return reports_.size() >= quorum_of(servers_); }

  template <class Question>
  [[nodiscard]] bool any(Question is_so) const {
    return std::ranges::any_of(reports_, is_so);
  }

  template <class Question>
  [[nodiscard]] bool quorum_where(Question is_so) const {
    return number_where(is_so) >= quorum_of(servers_);
  }

  /// Whether the servers that do not report this, or nothing, are no quorum.
  template <class Question>
  [[nodiscard]] bool no_quorum_without(Question is_so) const {
    return servers_ - number_where(is_so) < quorum_of(servers_);
  }

  [[nodiscard]] std::size_t min_ahead() const {
    const auto least = std::ranges::min_element(reports_, {}, &QueueStatus::ahead);
    return least == reports_.end() ? 0 : least->ahead;
  }

  [[nodiscard]] std::size_t max_others() const {
    std::size_t most = 0;
    for (const Report& at : reports_) most = std::max(most, at.others.value_or(0));
    return most;
  }

  [[nodiscard]] std::optional<Owner> collector() const {
    const auto found =
        std::ranges::find_if(reports_, [](const Report& at) { return at.collector.has_value(); });
    return found == reports_.end() ? std::nullopt : found->collector;
  }

  /// The owner of a waiter that supersedes us, unless we are superseded at too few servers.
  [[nodiscard]] std::optional<Owner> superseder() const {
    const Report* const told =
        told_to_leave([](const Report& at) { return !at.superseder.empty(); });
    return told == nullptr ? std::nullopt : std::optional(told->superseded_by.value_or(Owner()));
  }

  /// Who sent us away, unless too few servers report that.
  [[nodiscard]] std::optional<StopRequest> dismisser() const {
    const Report* const told =
        told_to_leave([](const Report& at) { return at.dismissal.has_value(); });
    return told == nullptr ? std::nullopt : told->dismissal;
  }

  [[nodiscard]] Ticket next_ticket() const {
    std::vector<Milliseconds> times;
    Ticket largest = 0;
    for (const Report& at : reports_) {
      times.push_back(at.time);
      largest = std::max(largest, at.max_ticket.value_or(0));
    }
    return redlock::next_ticket(std::move(times), largest);
  }

  /// The first instant at which a quorum may have changed.
  [[nodiscard]] std::optional<Duration> may_change() const {
    std::vector<Duration> changes;
    for (const Report& at : reports_) {
      if (at.granted) {
        changes.push_back(Duration::zero());
      } else if (at.may_change) {
        changes.push_back(*at.may_change);
      }
    }
    if (changes.size() < quorum_of(servers_)) return std::nullopt;
    std::ranges::sort(changes);
    return changes[quorum_of(servers_) - 1];
  }

 private:
  /// A report that tells us to leave the queue, unless a quorum has reported otherwise; nullptr:
  /// there is none.
  template <class Question>
  [[nodiscard]] const Report* told_to_leave(Question is_so) const {
    const auto found = std::ranges::find_if(reports_, is_so);
    if (found == reports_.end() || quorum_where(std::not_fn(is_so))) return nullptr;
    return &*found;
  }

  template <class Question>
  [[nodiscard]] std::size_t number_where(Question is_so) const {
    return static_cast<std::size_t>(std::ranges::count_if(reports_, is_so));
  }

  std::size_t servers_;
  std::vector<Report> reports_;
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

Ticket next_ticket(std::vector<Milliseconds> times, Ticket largest_known) {
  std::ranges::sort(times);
  const Milliseconds median = std::max(times[times.size() / 2], Milliseconds(0));
  return std::max(static_cast<Ticket>(median.count()), largest_known + 1);
}

QueueView view_of(const std::vector<const QueueStatus*>& statuses, const std::vector<bool>& granted,
                  const QueueDemands& demands) {
  const Reports all(statuses, granted);
  QueueView view;
  view.queued = all.quorum_where([](const auto& at) { return at.queued || at.granted; });
  view.offered = all.quorum_where([](const auto& at) { return at.offered || at.granted; });
  view.has_largest = all.quorum_where([](const auto& at) { return at.max_ticket.has_value(); });
  view.cannot_publish = all.no_quorum_without([](const auto& at) { return at.cannot_publish; });
  view.watches = all.any([](const auto& at) { return at.watches; });
  view.newer = all.any([](const auto& at) { return at.newer; });
  view.ahead = all.min_ahead();
  view.others = all.max_others();
  view.collector = all.collector();
  view.superseded_by = all.superseder();
  view.dismissed_by = all.dismisser();
  if (demands.max_waiting) view.room = room_in(statuses, granted, *demands.max_waiting);
  if (!all.from_quorum()) return view;

  view.next_ticket = all.next_ticket();
  view.may_change = all.may_change();
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
  if (ahead == 1 || view.watches) {
    span = may_change + second_slack;
  } else if (ahead > 1) {
    // With an interval of n²/2 seconds at position n, the sum from the third position on is below
    // one poll a second.
    const auto position = static_cast<Milliseconds::rep>(std::min<std::size_t>(ahead + 1, 100));
    span = std::max<Duration>(may_change + others_slack, Milliseconds(500 * position * position));
  }
  return std::min<Duration>(span, max_poll_interval);
}

}  // namespace redlock
