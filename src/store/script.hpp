#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/boot_clock.hpp"

namespace redlock {

/// One question to the lock, or one change of its state. The sources, with the meaning of KEYS,
/// ARGV and replies, are in store/scripts; the positions are in core/protocol.txt.
struct Script {
  std::string_view name;
};

namespace scripts {
extern const Script acquire;
extern const Script ask;
extern const Script break_lock;
extern const Script count_skip;
extern const Script extend;
extern const Script heal;
extern const Script inspect;
extern const Script leave;
extern const Script raise_fence;
extern const Script release;

/// What a server runs: all of them in one, and the last of ARGV says which. A server that knows one
/// of them knows them all. Any other word runs none of them: for a server that is to learn the
/// text.
extern const std::string_view text;
extern const std::string_view sha1;  ///< of text, for EVALSHA
inline constexpr std::string_view none = "none";

/// Needs no other script; see undo.lua.
extern const std::string_view undo;
}  // namespace scripts

/// A script with its data.
struct ScriptCall {
  const Script* script;
  std::vector<std::string> keys;
  std::vector<std::string> arguments;  ///< the script's name among them, as the last
};

/// The reply of a script or a command, in the five types of RESP2.
struct Reply {
  enum class Type { nil, integer, text, status, error, array };

  Type type = Type::nil;
  std::int64_t integer = 0;
  std::string text;             ///< of text, status and error
  std::vector<Reply> elements;  ///< of array
};

/// A time span from a server. Limited so that it cannot overflow, whatever the server's clock or a
/// foreign client's expiry says.
constexpr Duration from_wire(std::int64_t milliseconds) {
  constexpr Milliseconds longest = std::chrono::hours(24 * 365 * 100);
  return std::clamp(Milliseconds(milliseconds), Milliseconds(0), longest);
}

}  // namespace redlock
