#pragma once

#include <optional>
#include <string_view>

#include "core/vote.hpp"
#include "store/script.hpp"
#include "support/result.hpp"

namespace redlock {

/// Turns the scripts' replies into votes; core/protocol.txt defines their fields. A malformed reply
/// is a Fault of kind garbage.

using ScriptReply = Result<Reply, Fault>;

AcquireVote acquire_vote(const ScriptReply& reply);
RaiseVote raise_vote(const ScriptReply& reply);
ExtendVote extend_vote(const ScriptReply& reply);
HealVote heal_vote(const ScriptReply& reply);
ReleaseVote release_vote(const ScriptReply& reply);
BreakVote break_vote(const ScriptReply& reply);
SkipVote skip_vote(const ScriptReply& reply);
DismissVote dismiss_vote(const ScriptReply& reply);
InspectVote inspect_vote(const ScriptReply& reply);
InspectVote ask_vote(const ScriptReply& reply);

/// What errors of the scripts mean, as one clause for the user.
inline constexpr std::string_view named_slots_text =
    "the slots of this lock have names: write --slots NAME,NAME,... as their holders do";
inline constexpr std::string_view numbered_slots_text =
    "the slots of this lock have numbers: write --slots N as their holders do";
inline constexpr std::string_view unknown_slot_text =
    "it has lost the record of a holder, which may be in any slot, until that holder renews";

/// Whether the reply to an acquire or a heal shows that the server has no lease of this token.
bool left_no_lease(const Reply& reply);

/// The notification for this word of queue.lua; nullopt for an unknown word.
std::optional<Notification> notification_from(std::string_view text);

}  // namespace redlock
