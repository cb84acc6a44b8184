#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace redlock::cli {

/// A configuration file's settings, by option name.
struct ConfigFile {
  std::string path;
  std::map<std::string, std::vector<std::string>, std::less<>> values;
};

/// Reads a TOML file of `name = value` lines; nothing when there is no such file. Throws
/// CommandError (config) when it cannot be read, has a section, or sets something that is no
/// setting. The error repeats nothing of what the file says: who runs us with other rights may name
/// any file.
std::optional<ConfigFile> read_config_file(const std::string& path);

/// Whether this is the system's file, and belongs to root, who keeps us from reading it.
bool is_withheld(const std::string& path);

/// The files to read: `chosen` alone when it is set, else the user's and the system's.
struct ConfigPaths {
  std::vector<std::string> strongest_first;
  std::optional<std::string>
      skipped;  ///< the user's, as HOME or XDG_CONFIG_HOME say, where these are
                ///< another user's, and closed to us: runuser and sudo keep them
};
ConfigPaths config_paths(const std::optional<std::string>& chosen);

}  // namespace redlock::cli
