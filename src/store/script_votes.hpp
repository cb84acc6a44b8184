#pragma once

#include <optional>

#include "core/vote.hpp"
#include "store/lock_server.hpp"
#include "store/reply.hpp"
#include "store/script.hpp"
#include "support/result.hpp"

namespace redlock {

/// Requests into script calls, replies into votes; where what stands in them, core/protocol.txt says. Whatever runs the scripts (Redis, a
/// file on this host, a simulation) shares it. A reply that no script gives is a Fault of kind garbage.

ScriptCall acquire_call(const AcquireRequest& request);
ScriptCall raise_fence_call(const RaiseRequest& request);
ScriptCall extend_call(const ExtendRequest& request);
ScriptCall heal_call(const HealRequest& request);
ScriptCall release_call(const ReleaseRequest& request);
ScriptCall break_call(const BreakRequest& request);
ScriptCall inspect_call(const Resource& resource, const std::optional<LeaseId>& share);
ScriptCall leave_call(const Resource& resource, const std::string& waiter);

using ScriptReply = Result<Reply, Fault>;

/// What an acquire or a heal may leave at a server even if nobody hears its answer, and what asks for it to be taken back: a token, or a
/// waiter's id. `arguments`: of such a call.
struct UndoTarget {
  std::string token;   ///< empty: no lease
  std::string waiter;  ///< empty: nobody in the queue
};
UndoTarget undo_target_of(const ScriptCall& call);

/// The token or the waiter's id that a release or a leave takes back.
const std::string& undone_by(const ScriptCall& call);

/// Whether this release leaves the key there for a while (ReleaseRequest::keep).
bool keeps_the_key(const ScriptCall& call);

/// Whether an attempt on it and its undo fit into one read of a server, with the login before them. Then a server that was silent reads
/// both, or neither, whatever became of us (decision 0075).
bool fits_into_one_read(const Resource& resource);
bool fits_into_one_read(const ScriptCall& call);

/// Whether the reply to an acquire or a heal says that the server has no lease of this token.
bool left_no_lease(const Reply& reply);

/// The word as the queue's script says it; nothing for another.
std::optional<Notification> notification_from(std::string_view word);

AcquireVote acquire_vote(const ScriptReply& reply);
RaiseVote raise_vote(const ScriptReply& reply);
ExtendVote extend_vote(const ScriptReply& reply);
HealVote heal_vote(const ScriptReply& reply);
ReleaseVote release_vote(const ScriptReply& reply);
BreakVote break_vote(const ScriptReply& reply);
InspectVote inspect_vote(const ScriptReply& reply);

}  // namespace redlock
