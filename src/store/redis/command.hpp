#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redlock::redis {

/// A command as the list of its words.
using Command = std::vector<std::string>;

/// A command as a server reads it: an array of strings in RESP. Source: Redis serialization
/// protocol specification, "Sending commands to a Redis server". hiredis encodes the same bytes, in
/// ten times as long.
class EncodedCommand {
 public:
  /// A command of so many words. add() each of them before it is sent.
  explicit EncodedCommand(std::size_t words);

  /// Implicit: whoever takes a command to send it takes either form.
  EncodedCommand(const Command& command);

  /// Adds the next word.
  void add(std::string_view word);

  [[nodiscard]] const std::string& bytes() const& noexcept { return bytes_; }
  [[nodiscard]] std::string bytes() && noexcept { return std::move(bytes_); }

 private:
  std::string bytes_;
};

}  // namespace redlock::redis
