#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/vote.hpp"
#include "store/reply.hpp"
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
extern const Script dismiss;
extern const Script end_sign;
extern const Script extend;
extern const Script heal;
extern const Script inspect;
extern const Script keep_record;
extern const Script leave;
extern const Script raise_fence;
extern const Script release;

/// All scripts in one text, which is what a server runs. The last of ARGV names the script, so a
/// server that knows one script knows them all. Any other name runs none of them; `none` is used to
/// make a server load the text.
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
  std::vector<std::string> arguments;  ///< the last one is the script's name

  /// A release that records a success for --once-per, if the reply says that it was recorded.
  bool records_success = false;

  /// Runs if the reply comes after the deadline, at most once; null: such a reply is dropped.
  std::function<void(const Reply&, const ServerFacts&)> late{};
};

/// A time span from a server. Limited so that it cannot overflow, whatever the server's clock is or
/// whatever expiry a foreign client has set.
constexpr Duration from_wire(std::int64_t milliseconds) {
  constexpr Milliseconds longest = std::chrono::hours(24 * 365 * 100);
  return std::clamp(Milliseconds(milliseconds), Milliseconds(0), longest);
}

/// The time span between two instants of a server's clock, negative if the first is the later one.
/// Limited like from_wire(): only the difference, since the clock may show any year.
constexpr Duration span_from_wire(std::int64_t from, std::int64_t to) {
  constexpr std::int64_t latest = std::int64_t{1} << 53;  // so that the difference cannot overflow
  const std::int64_t span = std::clamp(to, -latest, latest) - std::clamp(from, -latest, latest);
  return span < 0 ? -from_wire(-span) : from_wire(span);
}

}  // namespace redlock
