#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/lock_server.hpp"
#include "store/script.hpp"

namespace redlock {

/// Turns requests into script calls; core/protocol.txt defines their arguments. Shared, like
/// script_votes.hpp, by everything that runs the scripts: Redis, files on this host, a simulation.

ScriptCall acquire_call(const AcquireRequest& request);
ScriptCall raise_fence_call(const RaiseRequest& request);
ScriptCall extend_call(const ExtendRequest& request);
ScriptCall heal_call(const HealRequest& request);
ScriptCall release_call(const ReleaseRequest& request);
ScriptCall break_call(const BreakRequest& request);
ScriptCall inspect_call(const Resource& resource, const std::optional<LeaseId>& share,
                        const InspectScope& scope);
ScriptCall skip_call(const Resource& resource, std::string why);
ScriptCall dismiss_call(const DismissRequest& request);
ScriptCall ask_call(const AskRequest& request);
ScriptCall leave_call(const Resource& resource, const std::string& waiter);

/// Whether the call makes sense at a server that has only some of its keys, as in a slot that moves
/// (PROTOCOL D1); and the call for such a server, without the absent keys. `here`: for each key,
/// whether the server has it; the lock itself must be there.
bool may_lack_keys(const ScriptCall& call);
ScriptCall with_keys_that_are(const std::vector<bool>& here, ScriptCall call);

/// Whether the call makes sense with the lock's key alone, which is on no server.
bool may_lack_all_keys(const ScriptCall& call);

/// What this call could not do because the server lacked a key, as a call with that key alone:
/// remember the ttl of an extension (PROTOCOL R4), leave the sign of a release, or read that of a
/// lease that was asked to stop (R12). nullopt: nothing.
std::optional<ScriptCall> rest_of(const ScriptCall& call, const Reply& reply);

/// What an acquire or a heal may leave on a server even if its answer is lost, and what an
/// extension by a user of the lease may leave. The undo identifies it by the token, the user's or
/// the waiter's id.
struct UndoTarget {
  std::string token;   ///< or the user's id; empty: no lease
  std::string waiter;  ///< empty: no queue entry
};
UndoTarget undo_target_of(const ScriptCall& call);

/// The token, the user's or the waiter's id that a release or a leave removes from a server.
const std::string& undone_by(const ScriptCall& call);

/// Whether this release may leave the lock's key in place: for a while (ReleaseRequest::expire_in),
/// for the users of the lease, or because it is only the end of a user.
bool may_keep_the_key(const ScriptCall& call);

/// Whether the login, an attempt on the resource and its undo fit into one read(2) of a server.
/// Then a silent server reads all or none of them, even if we die meanwhile
/// (docs/decisions/attempts.md).
bool fits_into_one_read(const Resource& resource);
bool fits_into_one_read(const ScriptCall& call);

}  // namespace redlock
