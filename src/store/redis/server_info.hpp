#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/vote.hpp"
#include "store/reply.hpp"
#include "support/boot_clock.hpp"

namespace redlock::redis {

/// The text that INFO answers: `field:value` lines. Holds on to the text, which must outlive it.
class ServerInfo {
 public:
  explicit ServerInfo(std::string_view text) : text_(text) {}

  /// The value; nothing when there is no such field.
  [[nodiscard]] std::optional<std::string_view> field(std::string_view name) const;

  /// The value as a whole number; nothing when it is none.
  [[nodiscard]] std::optional<std::int64_t> number(std::string_view name) const;

  /// The replicas that WAIT counts.
  [[nodiscard]] std::int64_t replicas_in_step() const;

 private:
  std::string_view text_;
};

/// What a server said, at `told`, to INFO or INFO server, as it is now. An error tells nothing.
ServerFacts facts_from(const Reply& info, Instant told, Instant now);

/// No uptime is longer, whatever a server says: it keeps sums of times from overflow.
inline constexpr std::int64_t max_uptime = std::int64_t{100} * 365 * 24 * 3600;  // seconds

}  // namespace redlock::redis
