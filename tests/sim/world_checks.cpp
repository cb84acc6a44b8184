// What must be true of a world, while sessions come and go and at the end.
#include "world.hpp"

#include <algorithm>

namespace redlock::sim {
namespace {

/// How long the fence counter outlives everything else, and the longest lease.
constexpr std::chrono::hours for_ever{31 * 24};

/// So often a waiter's timer may end its wait just when the first server calls it.
constexpr std::size_t max_hasty_attempts = 2;

/// Whether one that waits behind it must wait for it: all but those who share the lock without a
/// slot.
bool keeps_out(const Session& first, const Session& next) {
  return !first.plan().mode.shared || !next.plan().mode.shared ||
         (first.plan().mode.slots > 0 && next.plan().mode.slots > 0);
}

}  // namespace

bool World::is_first(const Session& session) const {
  return std::ranges::none_of(sessions_, [&](const Session& other) {
    return &other != &session && other.waiting() && other.plan().start <= session.plan().start;
  });
}

/// Whoever may enter is told so: its own timers are not to find out.
void World::check_delay(const Session& session) {
  Duration since = std::max(referee_.kept_out_until(session.plan().mode, session.process()),
                            session.can_enter_since());
  Duration entry_end{};
  Duration bound = schedule_.bound;
  for (const Session& other : sessions_) {
    const bool may_be_before =
        other.plan().start <= session.queued_since().value_or(timeline_.now());
    if (&other == &session || !may_be_before) continue;
    if (other.waited_until()) since = std::max(since, *other.waited_until());
    entry_end = std::max(entry_end, other.left_queue_until());
    // Who stands before it, or is passed over because it cannot be notified, kept it out until it
    // could have entered itself.
    if (other.waiting() && (keeps_out(other, session) || !other.plan().undisturbed)) {
      since = std::max(since, referee_.kept_out_until(other.plan().mode, other.process()));
    }
    // Those behind it are told to stand by, and find out by themselves that there is no slot for
    // it.
    if (other.waiting() && other.plan().mode.slots > 0) bound = schedule_.bound + standby_delay;
  }
  // What came free before a server learned that somebody was killed was left to the one killed.
  const auto was_left_to = [&](const Session& other) {
    return other.killed_in_wait() && since >= *other.waited_until() &&
           since < *other.waited_until() + hang_up_time;
  };
  if (std::ranges::any_of(sessions_, was_left_to)) bound = schedule_.bound + standby_delay;
  // An entry that had not ended when the lock was free was notified, and whoever stands by for it
  // looks when it has had its chance, not when it ends.
  if (entry_end > since) since = std::max(entry_end, since + standby_delay);
  if (timeline_.now() <= since + bound) return;
  referee_.violate(
      "delay", fmt::format("{} could have entered since {:.0f} ms", session.name(), in_ms(since)));
}

void World::check_order(const Session& session) {
  for (const Session& other : sessions_) {
    const bool came_first = other.queued_since() && *other.queued_since() < session.plan().start;
    if (!came_first || !other.waiting() || !other.plan().undisturbed ||
        referee_.was_robbed(other.process()))
      continue;
    // Of two who may have it together, the network decides who hears of it first.
    if (other.plan().mode.shared && session.plan().mode.shared) continue;
    referee_.violate(
        "order", fmt::format("{} overtook {}, who was in the queue since {:.0f} ms", session.name(),
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
      fmt::format("nobody held the lock since {:.0f} ms, though somebody waited", in_ms(since)));
}

void World::check_outcome() {
  std::size_t holders = 0;
  for (const Session& session : sessions_) {
    holders += session.held() ? 1 : 0;
    const auto why = session.gave_up();
    const auto superseded = referee_.superseded_since(session.process());
    if (session.waiting() && superseded &&
        timeline_.now() > std::max(*superseded, schedule_.progress_from) + schedule_.bound) {
      referee_.violate("superseded", session.name() + " waits on although a newer waiter came");
    }
    if (session.waiting() && session.patient()) {
      if (schedule_.shape != Schedule::Shape::line) check_progress(session);
      if (schedule_.shape == Schedule::Shape::line && is_first(session)) check_delay(session);
    }
    using Why = AttemptFailure::Why;
    if (schedule_.shape == Schedule::Shape::duplicate) {
      // Granted, when a quorum of others was faster. Broken by force, it may fail otherwise.
      if (why && why != Why::duplicate && schedule_.mishaps.empty())
        referee_.violate("duplicate", "a server that was given twice was not told");
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
    if (why == Why::misconfigured && std::ranges::any_of(schedule_.mishaps, spoiled)) continue;
    if (why == Why::duplicate || why == Why::denied || why == Why::misconfigured)
      referee_.violate("answer", "a failure that cannot be");
    const bool unavailable = why == Why::unavailable || why == Why::too_slow;
    if (why == Why::superseded) continue;
    if (why && session.patient() && !unavailable)
      referee_.violate("answer", "somebody gave up who waits for ever");
    if (unavailable && session.plan().start > schedule_.calm)
      referee_.violate("answer", "no quorum though nothing was wrong");
  }
  if (schedule_.shape == Schedule::Shape::line && schedule_.mishaps.empty() &&
      referee_.hasty_attempts() > max_hasty_attempts) {
    referee_.violate("load",
                     fmt::format("{} times somebody did not wait for the other servers' calls",
                                 referee_.hasty_attempts()));
  }
  if (schedule_.shape == Schedule::Shape::cron && holders != 1) {
    referee_.violate("split",
                     fmt::format("{} of those that started together got the lock", holders));
  }
}

void World::check_leftovers() {
  if (std::string text = nights_.missing(); !text.empty()) referee_.violate("daily", text);
  for (Server& server : servers_) {
    if (server.is_replica()) continue;
    server.step_wall(for_ever);
    for (const auto& [key, entry] : server.keyspace().live()) {
      referee_.violate("expiry", fmt::format("{} stays for ever at s{}", key, server.number() + 1));
    }
  }
}

}  // namespace redlock::sim
