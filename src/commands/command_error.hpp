#pragma once

#include <stdexcept>
#include <string>

#include "output/exit_code.hpp"

namespace redlock {

/// An error that ends a command before it begins its work: invalid arguments or settings, an
/// unreadable file. Thrown only in cli and run, and caught only in main. The text is one line for
/// the user, safe for a terminal, and contains no secret.
class CommandError : public std::runtime_error {
 public:
  CommandError(ExitCode code, const std::string& text) : std::runtime_error(text), code_(code) {}
  [[nodiscard]] ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

}  // namespace redlock
