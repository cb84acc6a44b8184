#pragma once

#include <optional>

#include "core/vote.hpp"
#include "store/lock_server.hpp"
#include "store/reply.hpp"
#include "store/script.hpp"
#include "support/result.hpp"

namespace redlock {

/// Requests into script calls, replies into votes: the one place that knows the scripts' KEYS, ARGV and replies. Whatever runs the
/// scripts (Redis, a file on this host, a simulation) shares it. A reply that no script gives is a Fault of kind garbage.

ScriptCall acquire_call(const AcquireRequest& request);
ScriptCall raise_fence_call(const RaiseRequest& request);
ScriptCall extend_call(const ExtendRequest& request);
ScriptCall heal_call(const HealRequest& request);
ScriptCall release_call(const ReleaseRequest& request);
ScriptCall break_call(const Resource& resource, std::optional<Fence> only_if);
ScriptCall inspect_call(const Resource& resource);

/// Whether the call may take a lock, or give one back. Such calls, and those that take it away again, have its token first.
bool may_grant(const ScriptCall& call);
const std::string& token_of(const ScriptCall& call);

using ScriptReply = Result<Reply, Fault>;

AcquireVote acquire_vote(const ScriptReply& reply);
RaiseVote raise_vote(const ScriptReply& reply);
ExtendVote extend_vote(const ScriptReply& reply);
HealVote heal_vote(const ScriptReply& reply);
ReleaseVote release_vote(const ScriptReply& reply);
BreakVote break_vote(const ScriptReply& reply);
InspectVote inspect_vote(const ScriptReply& reply);

}  // namespace redlock
