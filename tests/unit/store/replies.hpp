#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "store/script.hpp"

namespace redlock::testing {

inline Reply integer(std::int64_t value) {
  return {Reply::Type::integer, value, {}, {}};
}

inline Reply text(std::string value) {
  return {Reply::Type::text, 0, std::move(value), {}};
}

inline Reply error(std::string value) {
  return {Reply::Type::error, 0, std::move(value), {}};
}

inline Reply array(std::vector<Reply> elements) {
  return {Reply::Type::array, 0, {}, std::move(elements)};
}

}  // namespace redlock::testing
