#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::cli {

/// The file for all users; its directory is chosen at build time.
inline constexpr std::string_view system_config = REDLOCK_SYSCONFDIR "/redlock-cli.toml";

/// The files to read: only `chosen` if it is set, else the user's and the system's.
struct ConfigPaths {
  std::vector<std::string> strongest_first;

  /// The file below HOME or XDG_CONFIG_HOME, if it is inaccessible in another user's directory:
  /// runuser and sudo may keep both variables.
  std::optional<std::string> skipped;
};
ConfigPaths config_paths(const std::optional<std::string>& chosen);

/// Whether this is the system's file, and root has denied this user access to it.
bool is_withheld(const std::string& path);

}  // namespace redlock::cli
