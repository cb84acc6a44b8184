#pragma once

#include <string>
#include <string_view>

namespace redlock::cli {

/// A library that the program uses.
struct Component {
  std::string_view name;
  std::string_view version;
  std::string_view how;      ///< `shared`, `linked in`, `loaded when …`
  std::string_view licence;  ///< an SPDX expression
};

/// The text for --version: `redlock-cli X.Y.Z`, then lines `name: …` with the commit, the compiler,
/// the libraries and the features of this build.
std::string version_text();

}  // namespace redlock::cli
