#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace redlock {

/// One state change of the lock, as text that a server runs. The sources, with the meaning of KEYS, ARGV and replies, are in store/scripts.
struct Script {
  std::string_view name;
  std::string_view text;
  std::string_view sha1;  ///< of text, for EVALSHA
};

namespace scripts {
extern const Script acquire;
extern const Script break_lock;
extern const Script extend;
extern const Script heal;
extern const Script inspect;
extern const Script raise_fence;
extern const Script release;
}  // namespace scripts

/// A script with its data.
struct ScriptCall {
  const Script* script;
  std::vector<std::string> keys;
  std::vector<std::string> arguments;
};

}  // namespace redlock
