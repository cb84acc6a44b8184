#pragma once

#include <string>
#include <string_view>

#include "support/result.hpp"

namespace redlock::local {

/// The directory in which the locks of this host lie.
struct Place {
  std::string directory;  ///< absolute, in one spelling
  bool is_own = false;    ///< this user's, made when it is not there; otherwise it must be there, and who may write to it shares its locks

  /// For people and fingerprints.
  [[nodiscard]] std::string name() const { return "local:" + directory; }
};

/// Reads `local:` (the place of this process's effective user) and `local:/directory`. The error is one clause for the user.
Result<Place, std::string> parse_place(std::string_view url);

}  // namespace redlock::local
