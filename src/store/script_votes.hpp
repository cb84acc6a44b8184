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

/// Whether the reply to an acquire or a heal shows that the server has no lease of this token.
bool left_no_lease(const Reply& reply);

/// The notification for this word of queue.lua; nullopt for an unknown word.
std::optional<Notification> notification_from(std::string_view text);

}  // namespace redlock
