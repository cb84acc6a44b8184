#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/vote.hpp"
#include "store/redis/endpoint.hpp"
#include "store/reply.hpp"
#include "support/boot_clock.hpp"

namespace redlock::redis {

/// The text that INFO answers: `field:value` lines. Holds on to the text, which must outlive it.
class ServerInfo {
 public:
  explicit ServerInfo(std::string_view text) : text_(text) {}

  /// The value; nothing when there is no such field.
  [[nodiscard]] std::optional<std::string_view> field(std::string_view name) const;

  /// The value as a whole number; nothing when it is not one.
  [[nodiscard]] std::optional<std::int64_t> number(std::string_view name) const;

  /// The addresses of the replicas in step, as it sees them.
  [[nodiscard]] std::vector<Address> replicas() const;

  /// The replicas that WAIT counts.
  [[nodiscard]] std::int64_t replicas_in_step() const;

 private:
  std::string_view text_;
};

/// What a server answered, at `told`, to INFO or INFO server, brought up to date. An error gives no
/// facts.
ServerFacts facts_from(const Reply& info, Instant told, Instant now);

/// An upper bound for uptimes that servers report: it keeps sums of times from overflow.
inline constexpr std::int64_t max_uptime = std::int64_t{100} * 365 * 24 * 3600;  // seconds

}  // namespace redlock::redis
