#include "output/describe.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "support/duration.hpp"
#include "support/text.hpp"

namespace redlock::output {
namespace {

using Why = AttemptFailure::Why;

std::string safe(std::string_view text) {
  return escape_for_terminal(text);
}

std::string owner_text(const Owner& owner) {
  std::string text =
      fmt::format("{}@{}, pid {}", owner.user.empty() ? "?" : safe(owner.user), owner.host.empty() ? "?" : safe(owner.host), owner.pid);
  if (!owner.command.empty()) text += fmt::format(" ({})", safe(owner.command));
  if (!owner.note.empty()) text += fmt::format(", \"{}\"", safe(owner.note));
  return text;
}

std::string foreign_text(const Holder& holder) {
  if (holder.type != "string") return fmt::format("a foreign client (a key of type {})", safe(holder.type));
  return "a foreign client";
}

std::string held_back_text(const std::vector<HeldBack>& servers) {
  std::string text;
  for (const HeldBack& young : servers) {
    if (!text.empty()) text += "; ";
    text += fmt::format("{} started {} ago and may have forgotten a lock, its vote counts in {}", safe(young.server),
                        format_duration(young.up), format_duration(young.left));
  }
  return text;
}

std::string who_text(const Holder& holder) {
  if (holder.foreign) return foreign_text(holder);
  if (holder.shared && !holder.owner) return "some who share it";
  if (!holder.owner) return "somebody whose owner record cannot be read";
  return (holder.shared ? "some who share it, the latest " : "") + owner_text(*holder.owner);
}

}  // namespace

std::string key_text(const Resource& resource) {
  return safe(resource.key());
}

std::string keys_text(const std::vector<Resource>& resources) {
  std::string text;
  for (const Resource& resource : resources) text += (text.empty() ? "" : ", ") + key_text(resource);
  return text;
}

std::string holder_text(const Holder& holder) {
  std::string text = who_text(holder);
  if (holder.age) text += ", for " + format_duration(*holder.age);
  if (holder.remaining) {
    text += fmt::format(", {} left", format_duration(*holder.remaining));
  } else {
    text += ", without expiry: it never ends by itself; `redlock-cli release --force` breaks it";
  }
  return text;
}

std::string faults_text(const std::vector<ServerFault>& faults) {
  std::string text;
  for (const ServerFault& fault : faults) {
    if (!text.empty()) text += "; ";
    text += fmt::format("{}: {}", safe(fault.server), fault.fault.text);
  }
  return text;
}

std::string failure_text(const AttemptFailure& failure, std::size_t servers) {
  const std::string faults = faults_text(failure.faults);
  switch (failure.why) {
    case Why::busy:
    case Why::maybe_busy:
    case Why::split:
      if (failure.holder) return "held by " + holder_text(*failure.holder);
      return failure.why == Why::busy ? "others wait for it and come first" : "others try to take it at the same time";
    case Why::unavailable:
      return fmt::format("no quorum: {} of {} servers must answer{}{}", quorum_of(servers), servers, faults.empty() ? "" : "; ", faults);
    case Why::denied:
      return "denied: " + faults;
    case Why::misconfigured:
      return "wrong server: " + faults;
    case Why::duplicate:
      return "two of the servers given are the same one; each must be named once";
    case Why::guarded:
      return "held back by --restart-guard: " + held_back_text(failure.held_back);
    case Why::too_slow:
      return fmt::format("the servers took {} to grant it, too much of its ttl; use a longer --ttl{}{}",
                         format_duration(failure.round_trip), faults.empty() ? "" : "; ", faults);
    case Why::interrupted:
      return "interrupted";
    case Why::outgrown:
      return "the run around this one only shares it: neither the whole lock nor another slot can be had here";
    case Why::enclosed:
      return "the run around this one holds it, with a ttl too short for this --ttl and --grace; give both the same";
  }
  return "failed";
}

std::string not_ours_text(const std::optional<NotOurs>& not_ours) {
  if (!not_ours) return "it is not ours any more";
  switch (not_ours->why) {
    case NotOurs::Why::gone:
      return "it is gone: it expired, was deleted, or the server lost it";
    case NotOurs::Why::released:
      return "it was released";
    case NotOurs::Why::held:
      return not_ours->holder ? "it is held by " + holder_text(*not_ours->holder) : "another holds it";
  }
  return "it is not ours any more";
}

std::string ended_text(const LeaseEnded& ended) {
  if (ended.state == LeaseState::expired) return "it could not be renewed in time";
  return not_ours_text(ended.not_ours);
}

std::string delay_text(Duration length, bool suspended) {
  if (suspended) return fmt::format("this machine was suspended for {}", format_duration(length));
  return fmt::format("this machine gave redlock-cli no CPU for {}", format_duration(length));
}

std::string unsafe_text(bool dead, const std::vector<long>& left, Duration late) {
  if (!dead) {
    return fmt::format("UNSAFE: processes of the command could not be killed and may outlive the "
                       "lock, which was not released{}{}",
                       left.empty() ? "" : ": ", fmt::join(left, " "));
  }
  return fmt::format("UNSAFE: the last process of the command was seen dead {} after the lock could expire",
                     format_duration(late));
}

std::string inspection_text(const Inspection& inspection) {
  switch (inspection.state) {
    case InspectState::free:
      return "free";
    case InspectState::held:
      return "held by " + holder_text(*inspection.holder);
    case InspectState::partly_held:
      return inspection.holder ? "held on less than a quorum, by " + holder_text(*inspection.holder) : "held on less than a quorum";
    case InspectState::unavailable:
      return "unknown: no quorum of servers answered";
  }
  return "unknown";
}

std::vector<std::string> company_lines(const Company& company) {
  std::vector<std::string> lines;
  for (const Share& share : company.first_shares) {
    lines.push_back((share.seat ? fmt::format("slot {}: ", *share.seat) : "shared: ") + holder_text(share.holder));
  }
  if (company.shares > company.first_shares.size())
    lines.push_back(fmt::format("and {} more", company.shares - company.first_shares.size()));
  for (const Waiting& waiting : company.first_waiters) {
    lines.push_back(fmt::format("waiting{}: {}, for {}", waiting.shared ? " to share it" : "",
                                waiting.owner ? owner_text(*waiting.owner) : "somebody", format_duration(waiting.since)));
  }
  if (company.waiters > company.first_waiters.size()) {
    lines.push_back(fmt::format("and {} more in line", company.waiters - company.first_waiters.size()));
  }
  return lines;
}

std::string vote_text(const InspectVote& vote) {
  if (std::holds_alternative<Free>(vote)) return "free";
  if (const auto* taken = std::get_if<Taken>(&vote)) return "held by " + holder_text(taken->holder);
  return std::get<Fault>(vote).text;
}

}  // namespace redlock::output
