#include "output/lock_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "output/holder_text.hpp"
#include "output/text_parts.hpp"
#include "support/duration.hpp"
#include "support/text.hpp"

namespace redlock::output {

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
    const std::string where = !share.slot_name.empty() ? escape_for_terminal(share.slot_name) + ": "
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
    const bool is_hold = waiting.owner && waiting.owner->hold_for;
    const std::string what =
        is_hold         ? " to put it on hold"
        : takes_several ? fmt::format(" for {} slots", waiting.owner->take)
        : wants_one     ? " for " + escape_for_terminal(waiting.owner->only.front())
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
