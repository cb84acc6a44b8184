#pragma once

#include <stdexcept>
#include <string>

#include "core/exit_code.hpp"

namespace redlock {

/// An error that ends a command, in most cases before it begins its work: invalid arguments or
/// settings, an unreadable file, output that cannot be written. Thrown only in cli and commands,
/// and caught only in main and in the completion. The text is one line for the user, safe for a
/// terminal, and contains no secret.
class CommandError : public std::runtime_error {
 public:
  CommandError(ExitCode code, const std::string& text) : std::runtime_error(text), code_(code) {}
  [[nodiscard]] ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

}  // namespace redlock
