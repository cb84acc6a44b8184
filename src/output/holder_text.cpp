#include "output/holder_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/decision.hpp"
#include "core/holds.hpp"
#include "output/request_text.hpp"
#include "output/text_parts.hpp"
#include "support/duration.hpp"
#include "support/text.hpp"
#include "support/timestamp.hpp"

namespace redlock::output {
namespace {

/// Leases are renewed when a third of their ttl has passed. With less than half of the ttl left, a
/// renewal has been missed.
constexpr int overdue_divisor = 2;

std::string foreign_text(const Holder& holder) {
  if (holder.type != "string")
    return fmt::format("a foreign client (a key of type {})", escape_for_terminal(holder.type));
  return "a foreign client";
}

bool is_in_slots(const Holder& holder) {
  return holder.shared && holder.owner && holder.owner->slots > 0;
}

constexpr std::string_view sharers = "processes that share it";

std::string who_text(const Holder& holder) {
  if (holder.foreign) return foreign_text(holder);
  if (holder.shared && !holder.owner) return std::string(sharers);
  if (!holder.owner) return "a holder whose owner record cannot be read";
  if (!holder.shared) return owner_text(*holder.owner);
  return fmt::format("{}, the latest {}", sharers, owner_text(*holder.owner));
}

std::string kept_text(const Owner& owner, const Finished& finished,
                      std::optional<Duration> remaining) {
  const Duration left = remaining.value_or(finished.expire_in);
  const Milliseconds now = wall_clock_now();
  const auto end = std::chrono::ceil<std::chrono::seconds>(now + left);
  std::string text =
      fmt::format("kept until {} by --min-hold of {}; ended {} ago", moment_text(end, now),
                  former_owner_text(owner),
                  format_duration(std::max(Duration::zero(), finished.expire_in - left)));
  if (finished.exit_code) text += fmt::format(", exit status {}", *finished.exit_code);
  if (finished.signal) text += fmt::format(", signal {}", *finished.signal);
  return text;
}

/// `on hold until 09:00 by ops@laptop: database move`.
std::string hold_text(const Owner& owner, Duration remaining) {
  return fmt::format("on hold until {} by {}{}", end_text(remaining),
                     person_text(owner.user, owner.host),
                     owner.note.empty() ? "" : ": " + escape_for_terminal(owner.note));
}

/// Of a lease that was a hold, and is now only that of its users.
std::string former_hold_text(const Holder& holder) {
  const Owner& owner = *holder.owner;
  return fmt::format("held under the {} hold of {}{}{}", owner.lifted ? "lifted" : "ended",
                     person_text(owner.user, owner.host),
                     owner.note.empty() ? "" : ": " + escape_for_terminal(owner.note),
                     holder.remaining ? ", expires in " + format_duration(*holder.remaining) : "");
}

/// `last renewed 3s ago`; of a run whose ttl is not known only that it renews.
std::string renewed_text(const Holder& holder) {
  const auto ago = since_renewal(holder);
  if (!ago) return "renewed";
  return fmt::format("last renewed {} ago",
                     format_duration(std::chrono::floor<std::chrono::seconds>(*ago)));
}

/// `; no command runs yet: …; used by …; asked to stop by …; a newer version holds it: …`; empty if
/// none applies.
std::string notes_on(const Holder& holder) {
  const std::string awaited = holder.waits_for ? "; " + awaited_text(*holder.waits_for) : "";
  const std::string used = holder.users.empty() ? "" : "; used by " + users_text(holder.users);
  if (!holder.owner) return used;
  const auto& request = holder.owner->stop_request;
  return awaited + used + (request ? "; " + asked_text(*request) : "") +
         (holder.owner->newer ? "; a newer version holds it: upgrade redlock-cli" : "");
}

/// `run pid 4711 on web1: deploy.sh`.
std::string user_text(const ShownUser& user) {
  if (!user.owner) return "a process whose record cannot be read";
  return fmt::format(
      "{}pid {} on {}{}", user.owner->supervised ? "run " : "", user.owner->pid,
      escape_for_terminal(user.owner->host),
      user.owner->command.empty() ? "" : ": " + escape_for_terminal(user.owner->command));
}

/// `2 of 4 slots taken`, `held in slots` if their number is unknown; for those who want a certain
/// slot, that it is taken, perhaps by another than the latest.
std::string taken_text(const TakenSlots& slots, std::size_t all) {
  if (slots.limit == 0) return "held in slots";
  if (slots.limit == 1 && all > 1) return fmt::format("the wanted slot is taken; of all {}", all);
  return fmt::format("{} of {} slots taken", slots.taken, slots.limit);
}

/// `2 of 4 slots taken, the latest by …`.
std::string slots_text(const TakenSlots& slots, const Holder& holder) {
  const Owner& latest = *holder.owner;
  const std::string taken = taken_text(slots, latest.slots);
  if (latest.hold_for) {
    return fmt::format("{}, the last on hold by {}{}", taken, person_text(latest.user, latest.host),
                       latest.note.empty() ? "" : ": " + escape_for_terminal(latest.note));
  }
  if (latest.lifted) return fmt::format("{}, the last {}", taken, former_hold_text(holder));
  if (latest.finished) {
    return fmt::format("{}, the last {}", taken,
                       kept_text(latest, *latest.finished, holder.remaining));
  }
  const std::string age = holder.age ? ", for " + format_duration(*holder.age) : "";
  return fmt::format("{}, the latest by {}{}{}", taken, owner_text(latest), age, notes_on(holder));
}

/// For an exclusive or shared lock, not one with slots.
std::string sole_or_shared_text(const Holder& holder) {
  if (const auto remaining = hold_remaining(holder))
    return hold_text(*holder.owner, *remaining) + notes_on(holder);
  if (holder.owner && (holder.owner->hold_for || holder.owner->lifted))
    return former_hold_text(holder) + notes_on(holder);
  if (!holder.owner || !holder.owner->finished)
    return "held by " + holder_text(holder) + notes_on(holder);
  // The finished holder of a shared lock is reported only when no command runs under any share.
  return (holder.shared ? fmt::format("held by {}, the last ", sharers) : std::string()) +
         kept_text(*holder.owner, *holder.owner->finished, holder.remaining);
}

/// Whether a server of this name is a lock directory of this host.
bool is_local(std::string_view server) {
  return server.starts_with("local:");
}

}  // namespace

std::string held_text(const Holder& holder) {
  return held_text(holder, {});
}

std::string held_text(const Holder& holder, const TakenSlots& slots) {
  return is_in_slots(holder) ? slots_text(slots, holder) : sole_or_shared_text(holder);
}

const char* slot_mismatch(const Holder& holder, const std::optional<std::string>& slot) {
  if (!holder.owner || holder.foreign) return nullptr;
  const bool has_slots = holder.owner->slots > 0;
  if (slot && !has_slots) return "it has no slots: leave out --slot";
  if (!slot && has_slots) return "choose a slot with --slot SLOT";
  return nullptr;
}

std::string holder_text(const Holder& holder) {
  std::string text = who_text(holder);
  const std::string age = holder.age ? ", for " + format_duration(*holder.age) : "";
  if (!holder.remaining) return text + age + ", never expires";
  // The latest share need not be the last to expire.
  if (holder.shared) return text + age;
  const std::string expiry = ", expires in " + format_duration(*holder.remaining);
  switch (renewal_of(holder)) {
    case Renewal::renewed:
      return text + age + ", " + renewed_text(holder);
    case Renewal::overdue:
      return text + age +
             fmt::format(", not renewed for {}", format_duration(*since_renewal(holder))) + expiry;
    case Renewal::none:
      return text + age + expiry;
    case Renewal::unknown:
      break;
  }
  return text + age + expiry + " unless it is renewed";
}

Renewal renewal_of(const Holder& holder) {
  const auto renewed_for = holder.owner ? holder.owner->renewed_for : std::nullopt;
  if (!renewed_for) {
    const bool is_run = holder.owner && holder.owner->supervised;
    return is_run ? Renewal::renewed : Renewal::unknown;
  }
  if (*renewed_for == Duration::zero()) return Renewal::none;
  const bool is_overdue = holder.remaining && *holder.remaining < *renewed_for / overdue_divisor;
  return is_overdue ? Renewal::overdue : Renewal::renewed;
}

std::optional<Duration> since_renewal(const Holder& holder) {
  const auto renewed_for = holder.owner ? holder.owner->renewed_for : std::nullopt;
  if (!renewed_for || *renewed_for == Duration::zero() || !holder.remaining) return std::nullopt;
  return std::max(Duration::zero(), *renewed_for - *holder.remaining);
}

std::string awaited_text(const AwaitedLock& lock) {
  return fmt::format("no command runs yet: it waits for {}, {} in queue", key_text(lock.resource),
                     ordinal(lock.ahead + 1));
}

std::string users_text(const std::vector<ShownUser>& users) {
  std::vector<std::string> texts;
  std::ranges::transform(users, std::back_inserter(texts), user_text);
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string forgetful_text(const std::vector<std::string>& forgetful, std::size_t servers) {
  if (servers - forgetful.size() >= quorum_of(servers)) return {};
  const std::string who = escape_for_terminal(fmt::format("{}", fmt::join(forgetful, ", ")));
  const char* const persist = forgetful.size() == 1 ? "persists" : "persist";
  if (is_local(forgetful.front())) return who + ": a reboot of this host ends the hold";
  if (servers < 3) return fmt::format("{} {} nothing: a restart ends the hold", who, persist);
  return fmt::format(
      "{} {} nothing: the hold outlives their restarts only one by one, with `redlock-cli status "
      "KEY` after each",
      who, persist);
}

bool is_like_lock(const Holder& foreign) {
  return foreign.type == "string" && foreign.remaining;
}

std::string foreign_advice(const Resource& resource, bool is_like_lock) {
  return is_like_lock ? fmt::format("`redlock-cli release {} --force --foreign` breaks it",
                                    key_option(resource))
                      : "find out whose data it is, and lock another key";
}

std::string foreign_key_text(const ForeignKey& key) {
  const Holder& holder = key.holder;
  std::string text;
  if (holder.type == "string") {
    text = key.size ? fmt::format("a string of {} bytes", *key.size) : "a string";
  } else {
    text = "a key of type " + escape_for_terminal(holder.type);
    if (key.size)
      text += fmt::format(" with {} {}", *key.size, *key.size == 1 ? "element" : "elements");
  }
  return text + (holder.remaining ? ", expires in " + format_duration(*holder.remaining)
                                  : std::string(", without expiry"));
}

}  // namespace redlock::output
