// Rules for a world, while sessions come and go and at the end.
#include "world.hpp"

#include <algorithm>

namespace redlock::sim {
namespace {

/// Longer than the longest lease and the record of the last run, which outlives everything else.
constexpr std::chrono::hours for_ever{71 * 24};

/// For how long those that come together to a bounded queue may find each other in it.
constexpr std::chrono::milliseconds contention{1200};

/// How often a waiter's timer may end its wait just when the first server notifies it.
constexpr std::size_t max_hasty_attempts = 2;

/// Whether `next` must wait for `first`: always, unless both share the lock and at most one of them
/// wants a slot, or none wants what the other wants by name.
bool keeps_out(const Session& first, const Session& next) {
  const Mode& one = first.plan().mode;
  const Mode& other = next.plan().mode;
  if (!one.shared || !other.shared) return true;
  if (one.slots == 0 || other.slots == 0) return false;
  return one.only.empty() ||
         std::ranges::any_of(one.only, [&](const std::string& slot) { return is_in(other, slot); });
}

bool has_slots_by_name(const SessionPlan& plan) {
  return !plan.mode.only.empty();
}

bool has_slots_by_number(const SessionPlan& plan) {
  return plan.mode.slots > 0 && plan.mode.only.empty();
}

}  // namespace

bool World::is_first(const Session& session) const {
  return std::ranges::none_of(sessions_, [&](const Session& other) {
    const bool is_before = other.plan().priority != session.plan().priority
                               ? other.plan().priority > session.plan().priority
                               : other.plan().start <= session.plan().start;
    return &other != &session && other.waiting() && is_before;
  });
}

/// A waiter that may enter is notified: it must not depend on its own timers.
void World::check_delay(const Session& session) {
  Duration since = std::max(referee_.kept_out_until(session.plan().mode, session.process()),
                            session.can_enter_since());
  Duration entry_end{};
  Duration bound = schedule_.bound;
  for (const Session& other : sessions_) {
    const bool may_be_before =
        other.plan().priority > session.plan().priority ||
        other.plan().start <= session.queued_since().value_or(timeline_.now());
    if (&other == &session || !may_be_before) continue;
    if (other.waited_until()) since = std::max(since, *other.waited_until());
    entry_end = std::max(entry_end, other.left_queue_until());
    // A waiter before it, even one that cannot be notified and is passed over, kept it out until
    // that waiter could have entered.
    if (other.waiting() && (keeps_out(other, session) || !other.plan().undisturbed)) {
      since = std::max(since, referee_.kept_out_until(other.plan().mode, other.process()));
    }
    // The waiters behind it are told to stand by, and learn by polling that no slot is free for it.
    if (other.waiting() && other.plan().mode.slots > 0) bound = schedule_.bound + standby_delay;
  }
  // A lock that came free before a server noticed that a waiter was killed was left to that waiter.
  const auto was_left_to = [&](const Session& other) {
    return other.killed_in_wait() && since >= *other.waited_until() &&
           since < *other.waited_until() + hang_up_delay;
  };
  if (std::ranges::any_of(sessions_, was_left_to)) bound = schedule_.bound + standby_delay;
  // A waiter whose entry had not ended when the lock came free was notified. Waiters that stand by
  // for it poll when it has had its chance, not when its entry ends.
  if (entry_end > since) since = std::max(entry_end, since + standby_delay);
  if (timeline_.now() <= since + bound) return;
  referee_.violate(
      "delay", fmt::format("{} could have entered since {:.0f} ms", session.name(), in_ms(since)));
}

void World::check_full(const Session& session) {
  if (session.gave_up() != AcquireDecision::queue_full) return;
  // Of those that came together some may have left by now, and one that was killed is noticed when
  // its connection ends.
  const auto counts = [&](const Session& other) {
    const bool waited_lately =
        other.waited_until() && *other.waited_until() > timeline_.now() - contention;
    return &other != &session && (other.waiting() || other.killed_in_wait() || waited_lately);
  };
  const auto others = static_cast<std::size_t>(std::ranges::count_if(sessions_, counts));
  if (others >= *session.plan().max_waiting) return;
  referee_.violate("full", fmt::format("{} leaves for {} others", session.name(), others));
}

void World::check_order(const Session& session) {
  for (const Session& other : sessions_) {
    const bool came_first = other.queued_since() && *other.queued_since() < session.plan().start;
    if (!came_first || other.plan().priority < session.plan().priority || !other.waiting() ||
        !other.plan().undisturbed || referee_.was_broken(other.process()))
      continue;
    // Of two waiters that may have it together, the network decides which one learns of it first.
    if (other.plan().mode.shared && session.plan().mode.shared) continue;
    referee_.violate("order",
                     fmt::format("{} overtook {}, which was queued since {:.0f} ms", session.name(),
                                 other.name(), in_ms(*other.queued_since())));
  }
}

void World::check_progress(const Session& session) {
  Duration since = std::max(schedule_.progress_from, session.can_enter_since());
  Duration bound{};
  for (std::size_t i = 0; i < session.plan().keys; ++i) {
    const Resource& resource = resources_.at(session.plan().first_key + i);
    since = std::max(since, referees_.of(resource).busy_until(session.process()));
    bound += schedule_.bound;
  }
  if (timeline_.now() <= since + bound) return;
  referee_.violate(
      "progress",
      fmt::format("no session held the lock since {:.0f} ms, although one waited", in_ms(since)));
}

void World::check_outcome() {
  std::size_t holders = 0;
  for (const Session& session : sessions_) {
    holders += session.held() ? 1 : 0;
    const auto why = session.gave_up();
    const auto superseded = referee_.superseded_since(session.process());
    if (session.waiting() && superseded &&
        timeline_.now() > std::max(*superseded, schedule_.progress_from) + schedule_.bound) {
      referee_.violate("superseded",
                       session.name() + " keeps waiting although a newer waiter came");
    }
    const auto dismissed = referee_.dismissed_since(session.process());
    if (session.waiting() && dismissed &&
        timeline_.now() > std::max(*dismissed, schedule_.progress_from) + schedule_.bound) {
      referee_.violate("dismissed", session.name() + " keeps waiting although it was dismissed");
    }
    if (session.waiting() && session.waits_for_ever()) {
      if (schedule_.shape != Schedule::Shape::queue) check_progress(session);
      if (schedule_.shape == Schedule::Shape::queue && is_first(session)) check_delay(session);
    }
    using Why = AcquireDecision;
    if (schedule_.shape == Schedule::Shape::duplicate) {
      // It is granted when a quorum of others was faster. When broken by force, it may fail in
      // another way.
      if (why && why != Why::duplicate && schedule_.mishaps.empty())
        referee_.violate("duplicate", "a server that is configured twice was not reported");
      continue;
    }
    const auto moved = [](const Mishap& mishap) {
      return mishap.kind == Mishap::Kind::move_address;
    };
    if (why == Why::duplicate && std::ranges::any_of(schedule_.mishaps, moved)) continue;
    const bool may_be_denied = std::ranges::any_of(schedule_.mishaps, [](const Mishap& mishap) {
      return mishap.refusal == Refusal::no_rights;
    });
    if (why == Why::denied && may_be_denied) continue;
    const auto spoiled = [](const Mishap& mishap) {
      return mishap.kind == Mishap::Kind::spoil_counter;
    };
    const bool mixes_slots = std::ranges::any_of(schedule_.sessions, has_slots_by_name) &&
                             std::ranges::any_of(schedule_.sessions, has_slots_by_number);
    const bool may_be_wrong = mixes_slots || std::ranges::any_of(schedule_.mishaps, spoiled);
    if (why == Why::misconfigured && may_be_wrong) continue;
    if (why == Why::duplicate || why == Why::denied || why == Why::misconfigured)
      referee_.violate("answer", "an impossible failure");
    const bool unavailable = why == Why::unavailable || why == Why::too_slow;
    if (why == Why::superseded || why == Why::dismissed || why == Why::stopped) continue;
    if (why == Why::queue_full && session.plan().max_waiting) continue;
    if (why && session.waits_for_ever() && !unavailable)
      referee_.violate("answer", "a session gave up that waits for ever");
    if (unavailable && session.plan().start > schedule_.calm)
      referee_.violate("answer", "no quorum although nothing was wrong");
  }
  if (schedule_.shape == Schedule::Shape::queue && schedule_.mishaps.empty() &&
      referee_.hasty_attempts() > max_hasty_attempts) {
    referee_.violate(
        "load", fmt::format("{} times a waiter did not gather the other servers' notifications",
                            referee_.hasty_attempts()));
  }
  if (schedule_.shape == Schedule::Shape::cron && holders != 1) {
    referee_.violate("split",
                     fmt::format("{} sessions that started together got the lock", holders));
  }
}

void World::check_leftovers() {
  if (std::string text = nights_.missing(); !text.empty()) referee_.violate("daily", text);
  for (Server& server : servers_) {
    if (server.is_replica()) continue;
    server.step_wall(for_ever);
    for (const auto& [key, entry] : server.keyspace().live()) {
      referee_.violate("expiry", fmt::format("{} never expires at s{}", key, server.number() + 1));
    }
  }
}

}  // namespace redlock::sim
