#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "store/local/commands.hpp"
#include "store/local/keyspace.hpp"
#include "store/reply.hpp"

namespace redlock::local {

/// Runs scripts as Redis runs them with EVAL, on a Keyspace instead.
///
/// A script has KEYS and ARGV; redis.call, pcall, sha1hex, error_reply and status_reply; of Lua 5.1 what computes and nothing else: no
/// files, no loading of code, no randomness, no metatables, no pcall but redis.pcall. Values are converted as Redis does (numbers lose
/// their fraction, nil is false, a table ends at its first nil). It makes no globals and changes none, so that one run leaves nothing to
/// the next. One that takes too many instructions or too much memory ends with an error; what it has done to the keyspace by then stays, as
/// in Redis.
///
/// Compiled scripts are kept. Starts Lua when it first runs one. Single-threaded.
class LuaHost {
 public:
  LuaHost();
  ~LuaHost();
  LuaHost(const LuaHost&) = delete;
  LuaHost& operator=(const LuaHost&) = delete;

  /// The script's reply; an error that it did not catch comes as an error reply with the place, as in Redis 7.0.
  Reply run(Keyspace& keyspace, std::string_view script, Arguments keys, Arguments arguments);

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace redlock::local
