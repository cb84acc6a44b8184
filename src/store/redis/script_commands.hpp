#pragma once

#include "store/redis/command.hpp"
#include "store/script.hpp"

namespace redlock::redis {

/// Runs the script by its digest.
EncodedCommand script_command(const ScriptCall& call);

/// Makes the server learn the text, and nothing else. With the lock's key, so that a proxy routes
/// it to the same server; by EVAL, which needs no more rights than EVALSHA.
EncodedCommand teaching_command(const ScriptCall& call);

/// Undoes what a release would, for a server that forgot the scripts (SCRIPT FLUSH). `alone`: with
/// the lock's key as the only one.
EncodedCommand undo_command(const ScriptCall& release, bool alone);

}  // namespace redlock::redis
