#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "support/result.hpp"

namespace redlock {

/// A password in the first line of a file. The file may change while we run, so it is read again
/// whenever the password is needed. A file that is not regular, such as a pipe, is read only once.
class PasswordFile {
 public:
  /// Reads it for the first time. The error is one clause for the user, which does not repeat the
  /// path.
  static Result<std::shared_ptr<PasswordFile>, std::string> open(const std::string& path);

  /// The password that is in the file now. While the file cannot be read or is empty, the last one.
  const std::string& password();

 private:
  std::string path_;  ///< absolute; empty: the file is not read again
  std::string password_;
};

/// The password in a text: its first line, without the byte order mark and the carriage return that
/// some editors add.
std::string password_in(std::string_view text);

}  // namespace redlock
