#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/fitness.hpp"

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

/// What INFO tells of fitness: all but facts, latency, clock and what only CONFIG knows.
ServerReport report_from(std::string_view info_text);

}  // namespace redlock::redis
