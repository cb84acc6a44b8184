#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace redlock::output {

/// JSON as it is printed. All but ASCII is escaped: text from a server could steer a terminal.
inline std::string one_line(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/true);
}

}  // namespace redlock::output
