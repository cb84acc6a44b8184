#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::redis {

/// A command as the list of its words.
using Command = std::vector<std::string>;

/// A command as a server reads it: an array of strings in RESP, as hiredis encodes it.
class EncodedCommand {
 public:
  // Implicit, so that functions that send a command take either form.
  // cppcheck-suppress noExplicitConstructor
  EncodedCommand(const Command& words);  // NOLINT(google-explicit-constructor)

  /// Of words that need not be copied first.
  explicit EncodedCommand(std::span<const std::string_view> words);

  [[nodiscard]] const std::string& bytes() const& noexcept { return bytes_; }
  [[nodiscard]] std::string bytes() && noexcept { return std::move(bytes_); }

 private:
  std::string bytes_;
};

}  // namespace redlock::redis
