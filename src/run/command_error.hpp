#pragma once

#include <stdexcept>
#include <string>

#include "output/exit_code.hpp"

namespace redlock {

/// Ends a command before it began its work: wrong arguments, wrong settings, an unreadable file.
/// Thrown in cli and run only, and caught once, in main. The text is one line for the user, safe
/// for a terminal, without any secret.
class CommandError : public std::runtime_error {
 public:
  CommandError(ExitCode code, const std::string& text) : std::runtime_error(text), code_(code) {}
  [[nodiscard]] ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

}  // namespace redlock
