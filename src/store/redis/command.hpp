#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/redis/endpoint.hpp"
#include "store/script.hpp"

namespace redlock::redis {

/// A command as the list of its words.
using Command = std::vector<std::string>;

/// A command as a server reads it: an array of strings in RESP, as hiredis encodes it.
class EncodedCommand {
 public:
  // Implicit, so that functions that send a command take either form.
  // cppcheck-suppress noExplicitConstructor
  EncodedCommand(const Command& words);  // NOLINT(google-explicit-constructor)

  /// Encodes the words without copying them first.
  explicit EncodedCommand(std::span<const std::string_view> words);

  [[nodiscard]] const std::string& bytes() const& noexcept { return bytes_; }
  [[nodiscard]] std::string bytes() && noexcept { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// The first commands on a connection to this endpoint. `password`: Endpoint::current_password().
std::vector<Command> login_commands(const Endpoint& endpoint,
                                    const std::optional<std::string>& password);

/// Runs the script by its digest.
EncodedCommand script_command(const ScriptCall& call);

/// Makes the server load the scripts without running one. It contains the lock's key, so that a
/// proxy routes it to the same server. It uses EVAL, which needs no more rights than EVALSHA.
EncodedCommand load_scripts_command(const ScriptCall& call);

/// Undoes what the release would undo, on a server that forgot the scripts (SCRIPT FLUSH). `alone`:
/// the lock's key is the only key.
EncodedCommand undo_command(const ScriptCall& release, bool alone);

}  // namespace redlock::redis
