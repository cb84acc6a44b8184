#include "output/failure_text.hpp"

#include <fmt/format.h>

#include "output/holder_text.hpp"
#include "output/request_text.hpp"
#include "output/text_parts.hpp"
#include "proc/process_stat.hpp"
#include "support/boot_clock.hpp"
#include "support/duration.hpp"
#include "support/text.hpp"

namespace redlock::output {
namespace {

std::string restarted_text(const std::vector<RestartedVote>& servers) {
  std::string text;
  for (const RestartedVote& restarted : servers) {
    if (!text.empty()) text += "; ";
    const std::string why =
        restarted.up < Duration::zero()
            ? fmt::format("the clock of {} was set back to before its start",
                          escape_for_terminal(restarted.server))
            : fmt::format("{} started {} ago and may have forgotten a lock",
                          escape_for_terminal(restarted.server), format_duration(restarted.up));
    text += fmt::format("{}; its vote counts in {}", why, format_duration(restarted.left));
  }
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

}  // namespace

std::string faults_text(const std::vector<ServerFault>& faults) {
  std::string text;
  for (const ServerFault& fault : faults) {
    if (!text.empty()) text += "; ";
    text += fmt::format("{}: {}", escape_for_terminal(fault.server), fault.fault.text);
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
        return (failure.may_share ? "an earlier waiter wants it alone and comes first; " : "") +
               held_text(*failure.holder, failure.queue.taken_slots) +
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

std::string failure_text(const ExtendResult& result) {
  return result.decision == ExtendDecision::lost ? not_ours_text(result.not_ours)
                                                 : "no quorum; " + faults_text(result.faults);
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

}  // namespace redlock::output
