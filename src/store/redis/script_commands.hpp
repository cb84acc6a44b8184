#pragma once

#include "store/redis/reply_reader.hpp"
#include "store/script.hpp"

namespace redlock::redis {

/// Runs the script by its digest.
Command script_command(const ScriptCall& call);

/// Makes the server learn the text, and nothing else. With the lock's key, so that a proxy routes
/// it to the same server; by EVAL, which needs no more rights than EVALSHA.
Command teaching_command(const ScriptCall& call);

/// Undoes what a release would, for a server that forgot the scripts (SCRIPT FLUSH). `alone`: with
/// the lock's key as the only one.
Command undo_command(const ScriptCall& release, bool alone);

}  // namespace redlock::redis
