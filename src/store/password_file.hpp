#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "support/result.hpp"

namespace redlock {

/// A password in the first line of a file, which may change while we run: it is read again whenever
/// it is asked for. What is no regular file, such as a pipe, is read once.
class PasswordFile {
 public:
  /// Reads it for the first time. The error is one clause for the user, which does not repeat the
  /// path.
  static Result<std::shared_ptr<PasswordFile>, std::string> open(const std::string& path);

  /// The password as the file has it now; while it cannot be read or is empty, the last one.
  const std::string& password();

 private:
  std::string path_;  ///< absolute, or empty: it is not read again
  std::string password_;
};

/// The password that a text holds: its first line, without the byte order mark before it and the
/// carriage return behind it that editors leave.
std::string password_in(std::string_view text);

}  // namespace redlock
