#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/decision.hpp"
#include "core/vote.hpp"

namespace redlock::output {

/// The state of a lock and of its queue, as `status` shows it. The functions are pure, except that
/// some read the wall clock. Text from servers, keys and records is returned escaped for the
/// terminal.

/// A lock's state for `status`: `free`, `held by …`, `unknown: …`.
std::string inspection_text(const Inspection& inspection);

/// Counts the taken slots of a lock that is shared in slots; nullopt for any other lock. `slots` is
/// the number of slots, where it is given; otherwise the number comes from the holders' records.
std::optional<TakenSlots> taken_slots(const LockParties& parties, std::optional<std::size_t> slots);

/// The processes that share the lock and those that wait for it, one line each.
std::vector<std::string> parties_lines(const LockParties& parties);

/// One server's answer in `status`.
std::string vote_text(const InspectVote& vote);

}  // namespace redlock::output
