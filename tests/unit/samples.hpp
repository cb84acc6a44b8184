#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "core/types.hpp"
#include "core/vote.hpp"

/// What most tests need one of, and do not care which.
namespace redlock::testing {

inline Token token(char digit = 'a') {
  return Token::from_text(std::string(Token::digits, digit)).value();
}

inline Ttl ttl(Duration span = std::chrono::seconds(30)) {
  return Ttl::from(span).value();
}

inline Resource resource(std::string_view key = "deploy") {
  return Resource::from(key).value();
}

/// For callers that keep a reference.
inline const Resource& deploy() {
  static const Resource value = resource("deploy");
  return value;
}

inline Owner some_owner() {
  return {"web1", "alice", "backup.sh", "nightly", 4711, /*supervised=*/false};
}

}  // namespace redlock::testing
