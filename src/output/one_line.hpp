#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace redlock::output {

/// JSON on one line, as it is printed. Everything but ASCII is escaped, because text from a server
/// could contain control sequences for a terminal.
inline std::string one_line(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/true);
}

}  // namespace redlock::output
