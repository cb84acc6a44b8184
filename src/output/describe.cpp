#include "output/describe.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/holds.hpp"
#include "proc/process_stat.hpp"
#include "support/boot_clock.hpp"
#include "support/duration.hpp"
#include "support/text.hpp"
#include "support/timestamp.hpp"

namespace redlock::output {
namespace {

/// Leases are renewed when a third of their ttl has passed. With less than half of the ttl left, a
/// renewal has been missed.
constexpr int overdue_divisor = 2;

std::string safe(std::string_view text) {
  return escape_for_terminal(text);
}

/// ` ("roll back")`.
std::string reason_text(const std::string& reason) {
  return reason.empty() ? "" : fmt::format(" (\"{}\")", safe(reason));
}

std::string note_text(const Owner& owner) {
  return owner.note.empty() ? std::string() : fmt::format(", \"{}\"", safe(owner.note));
}

/// `alice@web1 (run pid 4711: deploy.sh), "note"`. The word before `pid` identifies the process:
/// signalling a `run` ends its command, a detached holder is a process without one.
std::string owner_text(const Owner& owner) {
  std::string text = fmt::format("{} ({}pid {}", person_text(owner.user, owner.host),
                                 owner.supervised ? "run "
                                 : owner.detached ? "detached holder "
                                                  : "",
                                 owner.pid);
  if (!owner.command.empty()) text += ": " + safe(owner.command);
  return text + ")" + note_text(owner);
}

std::string foreign_text(const Holder& holder) {
  if (holder.type != "string")
    return fmt::format("a foreign client (a key of type {})", safe(holder.type));
  return "a foreign client";
}

std::string restarted_text(const std::vector<RestartedVote>& servers) {
  std::string text;
  for (const RestartedVote& restarted : servers) {
    if (!text.empty()) text += "; ";
    const std::string why =
        restarted.up < Duration::zero()
            ? fmt::format("the clock of {} was set back to before its start",
                          safe(restarted.server))
            : fmt::format("{} started {} ago and may have forgotten a lock", safe(restarted.server),
                          format_duration(restarted.up));
    text += fmt::format("{}; its vote counts in {}", why, format_duration(restarted.left));
  }
  return text;
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

/// How to release a lock that --min-hold keeps: its command has ended, so it is safe to break.
std::string freeing_advice(const Resource& resource, const Holder& holder) {
  if (holder.shared || !holder.owner || !holder.owner->finished) return {};
  return fmt::format("; `redlock-cli release {} --force` releases it now", key_option(resource));
}

/// Why a free slot is not granted: an earlier waiter is collecting several slots, or waits for one
/// of fewer slots.
std::string collector_text(const Owner& owner) {
  if (owner.take == 1 && !owner.only.empty()) {
    return fmt::format("a slot is free, but {} waits for it and comes first", owner_text(owner));
  }
  if (owner.take == 1) {
    return fmt::format("a slot is free, but {} waits for one of the first {} and comes first",
                       owner_text(owner), owner.slots);
  }
  return fmt::format("a slot is free, but {} waits for {} of them and comes first",
                     owner_text(owner), owner.take);
}

/// `on hold until 09:00 by ops@laptop: database move`.
std::string hold_text(const Owner& owner, Duration remaining) {
  return fmt::format("on hold until {} by {}{}", end_text(remaining),
                     person_text(owner.user, owner.host),
                     owner.note.empty() ? "" : ": " + safe(owner.note));
}

/// Of a lease that was a hold, and is now only that of its users.
std::string former_hold_text(const Holder& holder) {
  const Owner& owner = *holder.owner;
  return fmt::format("held under the {} hold of {}{}{}", owner.lifted ? "lifted" : "ended",
                     person_text(owner.user, owner.host),
                     owner.note.empty() ? "" : ": " + safe(owner.note),
                     holder.remaining ? ", expires in " + format_duration(*holder.remaining) : "");
}

/// `last renewed 3s ago`; of a run whose ttl is not known only that it renews.
std::string renewed_text(const Holder& holder) {
  const auto ago = since_renewal(holder);
  if (!ago) return "renewed";
  return fmt::format("last renewed {} ago",
                     format_duration(std::chrono::floor<std::chrono::seconds>(*ago)));
}

/// Which process holds the lock, for how long, and when it expires.
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
  return fmt::format("{}pid {} on {}{}", user.owner->supervised ? "run " : "", user.owner->pid,
                     safe(user.owner->host),
                     user.owner->command.empty() ? "" : ": " + safe(user.owner->command));
}

/// `2 of 4 slots taken, the latest by …`, or `held in slots, …` if the number of slots is unknown.
std::string slots_text(const TakenSlots& slots, const Holder& holder) {
  const std::string taken = slots.limit > 0
                                ? fmt::format("{} of {} slots taken", slots.taken, slots.limit)
                                : "held in slots";
  const Owner& latest = *holder.owner;
  if (latest.hold_for) {
    return fmt::format("{}, the last on hold by {}{}", taken, person_text(latest.user, latest.host),
                       latest.note.empty() ? "" : ": " + safe(latest.note));
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

std::string held_text(const Holder& holder, const TakenSlots& slots) {
  return is_in_slots(holder) ? slots_text(slots, holder) : sole_or_shared_text(holder);
}

/// Whether a server of this name is a lock directory of this host.
bool is_local(std::string_view server) {
  return server.starts_with("local:");
}

}  // namespace

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

std::string person_text(const std::string& user, const std::string& host) {
  return fmt::format("{}@{}", user.empty() ? "?" : safe(user), host.empty() ? "?" : safe(host));
}

std::string ordinal(std::size_t number) {
  const std::size_t last = number % 10;
  const bool is_teen = number % 100 / 10 == 1;
  const char* suffix = "th";
  if (!is_teen && last == 1) suffix = "st";
  if (!is_teen && last == 2) suffix = "nd";
  if (!is_teen && last == 3) suffix = "rd";
  return std::to_string(number) + suffix;
}

std::string awaited_text(const AwaitedLock& lock) {
  return fmt::format("no command runs yet: it waits for {}, {} in queue", key_text(lock.resource),
                     ordinal(lock.ahead + 1));
}

std::string key_text(const Resource& resource) {
  return safe(resource.key());
}

std::string keys_text(const std::vector<Resource>& resources) {
  std::vector<std::string> texts;
  std::ranges::transform(resources, std::back_inserter(texts), key_text);
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string former_owner_text(const Owner& owner) {
  return person_text(owner.user, owner.host) +
         (owner.command.empty() ? "" : fmt::format(" ({})", safe(owner.command))) +
         note_text(owner);
}

std::string users_text(const std::vector<ShownUser>& users) {
  std::vector<std::string> texts;
  std::ranges::transform(users, std::back_inserter(texts), user_text);
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string request_text(const StopRequest& request) {
  return person_text(request.user, request.host) + reason_text(request.reason);
}

std::string priority_text(unsigned priority) {
  return priority == 0 ? std::string() : fmt::format(", priority {}", priority);
}

std::string asked_text(const StopRequest& request) {
  return (request.newer ? "asked to stop for a newer run of " : "asked to stop by ") +
         request_text(request);
}

std::string sent_away_text(const SentAway& waiters) {
  if (waiters.number + waiters.unreached == 0) return "no waiters";
  std::string text =
      fmt::format("{} waiter{} sent away", waiters.number, waiters.number == 1 ? "" : "s");
  if (waiters.unreached == 0) return text;
  std::vector<std::string> names;
  std::ranges::transform(waiters.first_unreached, std::back_inserter(names), owner_text);
  return fmt::format("{}; {} not reached, which give{} up when running again: {}{}", text,
                     waiters.unreached, waiters.unreached == 1 ? "s" : "", fmt::join(names, ", "),
                     names.size() < waiters.unreached ? ", ..." : "");
}

std::string stopped_text(const StopRequest& request) {
  return (request.newer ? "stopped for a newer run of " : "stopped at the request of ") +
         request_text(request);
}

std::string broke_text(const Owner& breaker) {
  return person_text(breaker.user, breaker.host) + " broke it with `release --force`" +
         reason_text(breaker.note);
}

std::string moment_text(Milliseconds moment, Milliseconds now) {
  const bool is_today = local_time(moment, "%F") == local_time(now, "%F");
  return local_time(moment, is_today ? "%T" : "%F %T");
}

std::string end_text(Duration remaining) {
  const Milliseconds now = wall_clock_now();
  const auto end = std::chrono::round<std::chrono::seconds>(now + remaining);
  std::string text = moment_text(end, now);
  // Users choose full minutes.
  if (text.ends_with(":00")) text.resize(text.size() - 3);
  return text;
}

std::string held_text(const Holder& holder) {
  return held_text(holder, {});
}

std::string forgetful_text(const std::vector<std::string>& forgetful, std::size_t servers) {
  if (servers - forgetful.size() >= quorum_of(servers)) return {};
  const std::string who = safe(fmt::format("{}", fmt::join(forgetful, ", ")));
  const char* const persist = forgetful.size() == 1 ? "persists" : "persist";
  if (is_local(forgetful.front())) return who + ": a reboot of this host ends the hold";
  if (servers < 3) return fmt::format("{} {} nothing: a restart ends the hold", who, persist);
  return fmt::format(
      "{} {} nothing: the hold outlives their restarts only one by one, with `redlock-cli status "
      "KEY` after each",
      who, persist);
}

std::string key_option(const Resource& resource) {
  return (resource.key().starts_with('-') ? "--key=" : "-k ") + shell_word(resource.key());
}

std::string slot_option(const std::optional<std::string>& slot) {
  return slot ? " --slot " + *slot : std::string();
}

std::string foreign_key_text(const ForeignKey& key) {
  const Holder& holder = key.holder;
  std::string text;
  if (holder.type == "string") {
    text = key.size ? fmt::format("a string of {} bytes", *key.size) : "a string";
  } else {
    text = "a key of type " + safe(holder.type);
    if (key.size)
      text += fmt::format(" with {} {}", *key.size, *key.size == 1 ? "element" : "elements");
  }
  return text + (holder.remaining ? ", expires in " + format_duration(*holder.remaining)
                                  : std::string(", without expiry"));
}

std::string faults_text(const std::vector<ServerFault>& faults) {
  std::string text;
  for (const ServerFault& fault : faults) {
    if (!text.empty()) text += "; ";
    text += fmt::format("{}: {}", safe(fault.server), fault.fault.text);
  }
  return text;
}

std::string missing_votes_text(const std::vector<ServerFault>& faults, std::size_t servers) {
  if (faults.empty()) return {};
  return fmt::format("{} of {} servers not voting; {} tolerated: {}", faults.size(), servers,
                     servers - quorum_of(servers), faults_text(faults));
}

std::string held_around_us_text(const Owner& owner) {
  if (owner.supervised && !read_boot_id()) {
    return fmt::format(
        "held by {}, which waits for this command; its lease cannot be inherited, because "
        "/proc/sys/kernel/random/boot_id cannot be read (ProcSubset=pid hides it)",
        owner_text(owner));
  }
  return fmt::format(
      "held by {}, which waits for this command: pass its lease on with {}", owner_text(owner),
      owner.supervised ? "REDLOCK_HELD in its environment (sudo --preserve-env=REDLOCK_HELD)"
                       : "REDLOCK_LEASE, which `acquire --export` prints, in its environment");
}

std::string failure_text(const Resource& resource, const AttemptFailure& failure,
                         std::size_t servers) {
  const std::string faults = faults_text(failure.faults);
  switch (failure.why) {
    case AcquireDecision::busy:
    case AcquireDecision::maybe_busy:
    case AcquireDecision::split:
      if (failure.queue.collector) return collector_text(*failure.queue.collector);
      if (!failure.queue.newer && !failure.queue.slots.empty() && failure.queue.ahead > 0)
        return "earlier waiters come first";  // there are free slots
      if (failure.holder)
        return held_text(*failure.holder, failure.queue.taken_slots) +
               freeing_advice(resource, *failure.holder);
      if (failure.queue.newer)
        return "a newer version waits for it and comes first: upgrade redlock-cli";
      return failure.why == AcquireDecision::busy ? "earlier waiters come first"
                                                  : "several attempts at the same time";
    case AcquireDecision::unavailable:
      return fmt::format("no quorum: {} of {} servers must answer{}{}", quorum_of(servers), servers,
                         faults.empty() ? "" : "; ", faults);
    case AcquireDecision::denied:
      return "denied: " + faults;
    case AcquireDecision::misconfigured:
      return "wrong configuration: " + faults;
    case AcquireDecision::duplicate:
      return "two of the servers are the same; name each server once";
    case AcquireDecision::guarded:
      return "no quorum without recently restarted servers (--restart-guard): " +
             restarted_text(failure.restarted);
    case AcquireDecision::too_slow:
      return fmt::format(
          "the servers took {} to grant the lock, too much of its ttl; use a longer --ttl{}{}",
          format_duration(failure.round_trip), faults.empty() ? "" : "; ", faults);
    case AcquireDecision::queue_full:
      return fmt::format("the queue is full ({} waiting)", failure.queue.others);
    case AcquireDecision::superseded:
      return failure.queue.superseded_by
                 ? "superseded by " + owner_text(*failure.queue.superseded_by)
                 : "superseded: no quorum answered for 23 hours, and a newer waiter may have come "
                   "and gone";
    case AcquireDecision::dismissed:
      return "sent away by " + request_text(failure.queue.dismissed_by.value_or(StopRequest()));
    case AcquireDecision::interrupted:
      return "interrupted";
    case AcquireDecision::stopped:
      return "stopped at the request of another process";
    case AcquireDecision::held_around_us:
      return held_around_us_text(failure.holder.value().owner.value());
    case AcquireDecision::parent_too_weak:
      return "the enclosing run or acquire only shares the lock: a nested run can have neither the "
             "whole lock nor another slot";
    case AcquireDecision::undecided:
    case AcquireDecision::granted:
      break;
  }
  return "failed";
}

std::string not_ours_text(const std::optional<NotOurs>& not_ours) {
  if (!not_ours) return "no longer the holder";
  if (not_ours->breaker) {
    return broke_text(*not_ours->breaker) +
           (not_ours->holder ? "; now it is " + held_text(*not_ours->holder) : "");
  }
  switch (not_ours->why) {
    case NotOurs::Why::gone:
      if (not_ours->server.other_process) {
        return "it is gone: the server's address now leads to another process: a server that "
               "restarted without its data, a replica that took over, or another server behind a "
               "load balancer (see `redlock-cli doctor`)";
      }
      return std::string("it is gone: it expired, was released or deleted, or the server lost it") +
             (not_ours->server.reconnected
                  ? ", or the address leads to another server since we reconnected, as behind a "
                    "load balancer (see `redlock-cli doctor`)"
                  : "");
    case NotOurs::Why::released:
      return "it was released";
    case NotOurs::Why::held:
      return not_ours->holder ? "it is " + held_text(*not_ours->holder)
                              : "another process holds it";
  }
  return "no longer the holder";
}

std::string ended_text(const LeaseEnded& ended) {
  if (ended.state == LeaseState::expired) return "it could not be renewed in time";
  return not_ours_text(ended.not_ours);
}

std::string delay_text(Duration length, bool suspended) {
  if (suspended) return fmt::format("this machine was suspended for {}", format_duration(length));
  return fmt::format("this machine gave redlock-cli no CPU for {}", format_duration(length));
}

std::string unsafe_text(bool dead, const std::vector<pid_t>& left, Duration late) {
  if (!dead) {
    return fmt::format(
        "UNSAFE: processes of the command could not be killed and may outlive the "
        "lock, which was not released{}{}",
        left.empty() ? "" : ": ", proc::processes_text(left));
  }
  return fmt::format(
      "UNSAFE: the last process of the command was seen dead {} after the lock could expire",
      format_duration(late));
}

std::string inspection_text(const Inspection& inspection) {
  switch (inspection.state) {
    case InspectState::free:
      if (inspection.parties.shares > 0)
        return "free, except for what is left on less than a quorum of servers:";
      return "free";
    case InspectState::held: {
      const auto slots = taken_slots(inspection.parties, std::nullopt);
      return held_text(*inspection.holder, slots.value_or(TakenSlots()));
    }
    case InspectState::partly_held:
      return "on less than a quorum of servers " +
             (inspection.holder ? held_text(*inspection.holder) : "held");
    case InspectState::unavailable:
      return "unknown: no quorum of servers answered";
  }
  return "unknown";
}

std::optional<TakenSlots> taken_slots(const LockParties& parties,
                                      std::optional<std::size_t> slots) {
  const std::string& free = parties.free_slots;
  if (free.empty()) return std::nullopt;
  std::size_t limit = slots.value_or(0);
  bool by_name = false;
  for (const Share& share : parties.first_shares) {
    if (!slots && share.holder.owner) limit = std::max(limit, share.holder.owner->slots);
    by_name = by_name || !share.slot_name.empty();
  }
  // Without their names, the servers cannot tell which slots are free.
  if (by_name && !slots) return TakenSlots{parties.shares, limit};
  const auto end = limit > 0 && limit < free.size()
                       ? free.begin() + static_cast<std::ptrdiff_t>(limit)
                       : free.end();
  return TakenSlots{static_cast<std::size_t>(std::count(free.begin(), end, '0')), limit};
}

std::vector<std::string> parties_lines(const LockParties& parties) {
  std::vector<std::string> lines;
  for (const Share& share : parties.first_shares) {
    const auto& owner = share.holder.owner;
    const bool has_no_process = owner && (owner->finished || owner->hold_for || owner->lifted);
    const std::string where = !share.slot_name.empty() ? safe(share.slot_name) + ": "
                              : share.slot             ? fmt::format("slot {}: ", *share.slot)
                                                       : "shared: ";
    lines.push_back(where + (has_no_process ? held_text(share.holder) : holder_text(share.holder)) +
                    (share.holder.waits_for ? "; " + awaited_text(*share.holder.waits_for) : ""));
  }
  if (parties.shares > parties.first_shares.size())
    lines.push_back(fmt::format("and {} more", parties.shares - parties.first_shares.size()));
  for (const Waiting& waiting : parties.first_waiters) {
    const bool takes_several = waiting.owner && waiting.owner->take > 1;
    const bool wants_one = waiting.owner && waiting.owner->only.size() == 1;
    const std::string what =
        takes_several ? fmt::format(" for {} slots", waiting.owner->take)
        : wants_one   ? " for " + safe(waiting.owner->only.front())
                      : std::string(!waiting.shared                             ? ""
                                    : waiting.owner && waiting.owner->slots > 0 ? " for a slot"
                                                                                : " to share it");
    const unsigned priority = waiting.owner ? waiting.owner->priority : 0;
    lines.push_back(fmt::format("waiting{}: {}, for {}{}", what,
                                waiting.owner ? owner_text(*waiting.owner) : "a waiter",
                                format_duration(waiting.since), priority_text(priority)));
  }
  if (parties.waiters > parties.first_waiters.size()) {
    lines.push_back(
        fmt::format("and {} more in the queue", parties.waiters - parties.first_waiters.size()));
  }
  return lines;
}

std::string vote_text(const InspectVote& vote) {
  if (std::holds_alternative<Free>(vote)) return "free";
  if (const auto* taken = std::get_if<Taken>(&vote)) return held_text(taken->holder);
  return std::get<Fault>(vote).text;
}

}  // namespace redlock::output
