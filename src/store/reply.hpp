#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace redlock {

/// The reply of a script or a command, in the five types of RESP2.
struct Reply {
  enum class Type { nil, integer, text, status, error, array };

  Type type = Type::nil;
  std::int64_t integer = 0;
  std::string text;             ///< of text, status and error
  std::vector<Reply> elements;  ///< of array
};

}  // namespace redlock
