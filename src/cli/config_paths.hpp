#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::cli {

/// The system's file, for all users; the directory is chosen when this is built.
inline constexpr std::string_view system_config = REDLOCK_SYSCONFDIR "/redlock-cli.toml";

/// The files to read: `chosen` alone when it is set, else the user's and the system's.
struct ConfigPaths {
  std::vector<std::string> strongest_first;

  /// The user's file, as HOME or XDG_CONFIG_HOME give it, where these belong to another user and
  /// are inaccessible to us: runuser and sudo keep both variables.
  std::optional<std::string> skipped;
};
ConfigPaths config_paths(const std::optional<std::string>& chosen);

/// Whether this is the system's file, and its owner root keeps us from reading it.
bool is_withheld(const std::string& path);

}  // namespace redlock::cli
