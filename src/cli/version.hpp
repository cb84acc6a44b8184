#pragma once

#include <string>
#include <string_view>

namespace redlock::cli {

/// A library that the program is made of.
struct Component {
  std::string_view name;
  std::string_view version;
  std::string_view how;      ///< `shared`, `linked in`, `loaded when …`
  std::string_view licence;  ///< an SPDX expression
};

/// The text for --version: `redlock-cli X.Y.Z`, then lines with the commit, the compiler, the
/// libraries and what this build can do, each `name: …`.
std::string version_text();

}  // namespace redlock::cli
