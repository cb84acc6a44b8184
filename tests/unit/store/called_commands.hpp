#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

#include "store/script.hpp"

namespace redlock::testing {

/// The names of the commands that the scripts call, as they call them.
inline std::set<std::string> called_commands() {
  constexpr std::string_view call = "call('";
  std::set<std::string> names;
  std::string_view rest = scripts::text;
  for (std::size_t at = rest.find(call); at != std::string_view::npos; at = rest.find(call)) {
    rest.remove_prefix(at + call.size());
    names.emplace(rest.substr(0, rest.find('\'')));
  }
  return names;
}

}  // namespace redlock::testing
