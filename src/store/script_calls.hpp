#pragma once

#include <optional>
#include <string>

#include "store/lock_server.hpp"
#include "store/script.hpp"

namespace redlock {

/// Turns requests into script calls; core/protocol.txt defines their arguments. Everything that
/// runs the scripts (Redis, a file on this host, a simulation) shares it, and script_votes.hpp.

ScriptCall acquire_call(const AcquireRequest& request);
ScriptCall raise_fence_call(const RaiseRequest& request);
ScriptCall extend_call(const ExtendRequest& request);
ScriptCall heal_call(const HealRequest& request);
ScriptCall release_call(const ReleaseRequest& request);
ScriptCall break_call(const BreakRequest& request);
ScriptCall inspect_call(const Resource& resource, const std::optional<LeaseId>& share,
                        RunsTold runs);
ScriptCall skip_call(const Resource& resource, std::string why);
ScriptCall ask_call(const AskRequest& request);
ScriptCall leave_call(const Resource& resource, const std::string& waiter);

/// Whether the call means something at a server that has only some of its keys, and may name the
/// others no more; and the call for it. `here`: for each key, whether the server has it; it has
/// that of the lock (PROTOCOL D1).
bool may_lack_keys(const ScriptCall& call);
ScriptCall with_keys_that_are(const std::vector<bool>& here, ScriptCall call);

/// What an acquire or a heal may leave on a server even if its answer is lost, and what identifies
/// it for the undo: a token, or a waiter's id.
struct UndoTarget {
  std::string token;   ///< empty: no lease
  std::string waiter;  ///< empty: no queue entry
};
UndoTarget undo_target_of(const ScriptCall& call);

/// The token or the waiter's id that a release or a leave removes.
const std::string& undone_by(const ScriptCall& call);

/// Whether this release leaves the key there for a while (ReleaseRequest::expire_in).
bool keeps_the_key(const ScriptCall& call);

/// Whether an attempt on it and its undo, with the login before them, fit into one read of a
/// server. Then a silent server reads both or neither, whatever became of us
/// (docs/decisions/attempts.md).
bool fits_into_one_read(const Resource& resource);
bool fits_into_one_read(const ScriptCall& call);

}  // namespace redlock
