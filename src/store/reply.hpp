#pragma once

#include <cstdint>
#include <string>
#include <utility>
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

inline Reply integer_reply(std::int64_t number) {
  return {Reply::Type::integer, number, {}, {}};
}

inline Reply text_reply(std::string text) {
  return {Reply::Type::text, 0, std::move(text), {}};
}

inline Reply status_reply(std::string text) {
  return {Reply::Type::status, 0, std::move(text), {}};
}

inline Reply error_reply(std::string text) {
  return {Reply::Type::error, 0, std::move(text), {}};
}

inline Reply array_reply(std::vector<Reply> elements) {
  return {Reply::Type::array, 0, {}, std::move(elements)};
}

}  // namespace redlock
