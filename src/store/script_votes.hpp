#pragma once

#include <optional>

#include "core/vote.hpp"
#include "store/lock_server.hpp"
#include "store/reply.hpp"
#include "store/script.hpp"
#include "support/result.hpp"

namespace redlock {

/// Turns requests into script calls, and replies into votes; core/protocol.txt defines their
/// fields. Everything that runs the scripts (Redis, a file on this host, a simulation) shares it. A
/// malformed reply is a Fault of kind garbage.

ScriptCall acquire_call(const AcquireRequest& request);
ScriptCall raise_fence_call(const RaiseRequest& request);
ScriptCall extend_call(const ExtendRequest& request);
ScriptCall heal_call(const HealRequest& request);
ScriptCall release_call(const ReleaseRequest& request);
ScriptCall break_call(const BreakRequest& request);
ScriptCall inspect_call(const Resource& resource, const std::optional<LeaseId>& share);
ScriptCall leave_call(const Resource& resource, const std::string& waiter);

using ScriptReply = Result<Reply, Fault>;

/// What an acquire or a heal may leave on a server even if its answer is lost, and what identifies
/// it for the undo: a token, or a waiter's id. `arguments`: of such a call.
struct UndoTarget {
  std::string token;   ///< empty: no lease
  std::string waiter;  ///< empty: no queue entry
};
UndoTarget undo_target_of(const ScriptCall& call);

/// The token or the waiter's id that a release or a leave removes.
const std::string& undone_by(const ScriptCall& call);

/// Whether this release leaves the key there for a while (ReleaseRequest::keep).
bool keeps_the_key(const ScriptCall& call);

/// Whether an attempt on it and its undo, with the login before them, fit into one read of a
/// server. Then a silent server reads both or neither, whatever became of us (decision 0075).
bool fits_into_one_read(const Resource& resource);
bool fits_into_one_read(const ScriptCall& call);

/// Whether the reply to an acquire or a heal says that the server has no lease of this token.
bool left_no_lease(const Reply& reply);

/// The notification for this word of queue.lua; nothing for an unknown word.
std::optional<Notification> notification_from(std::string_view word);

AcquireVote acquire_vote(const ScriptReply& reply);
RaiseVote raise_vote(const ScriptReply& reply);
ExtendVote extend_vote(const ScriptReply& reply);
HealVote heal_vote(const ScriptReply& reply);
ReleaseVote release_vote(const ScriptReply& reply);
BreakVote break_vote(const ScriptReply& reply);
InspectVote inspect_vote(const ScriptReply& reply);

}  // namespace redlock
