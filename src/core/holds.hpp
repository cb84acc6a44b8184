#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "core/vote.hpp"

namespace redlock {

/// A hold, as the votes of one round show it (PROTOCOL F1-F3). Pure.

/// How long this hold lasts at the server that shows it, whatever its users do; nullopt: the lease
/// is not a hold, or no longer one. All shares together are none, even if the latest is one.
std::optional<Duration> hold_remaining(const Holder& holder);

/// The lock, as one server shows it in any round.
struct ShownLock {
  bool answered = false;            ///< with a vote
  const Holder* holder = nullptr;   ///< another process's lease, ours excluded
  std::span<const Share> shares{};  ///< of a shared lock, as far as known; all holds of slots
                                    ///< are among them
};

std::vector<ShownLock> shown_by(const std::vector<InspectVote>& votes);

/// A hold that at least one server shows with its mark.
struct FoundHold {
  Holder holder;           ///< as that server shows it; `hold` is set, and the fence is the lease's
  std::size_t shows = 0;   ///< how many servers show the lease, with its record or without
  Duration remaining{};    ///< the quorum-th largest; of fewer servers, the smallest
  Duration longest{};      ///< the longest time for which any server shows the lease
  bool is_lifted = false;  ///< a server shows that it was lifted
  std::vector<std::size_t> lacking{};  ///< the servers that answered and lost it, or its record
};

/// The hold of the whole lock that most servers show; nullopt if none shows one, or one of them
/// shows that lease without the mark. Of votes on a single slot, the hold of that slot.
std::optional<FoundHold> find_hold(const std::vector<ShownLock>& shown);

/// The holds of the whole lock and of its slots.
std::vector<FoundHold> find_holds(const std::vector<ShownLock>& shown);

}  // namespace redlock
