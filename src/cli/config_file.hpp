#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/option_types.hpp"

namespace redlock::cli {

/// A configuration file's settings.
struct ConfigFile {
  std::string path;

  /// Each value as the command line would have it; several for an array.
  std::map<const OptionRow*, std::vector<std::string>> values;
};

/// How the file was found, and so who may have written it: what it says chooses the servers.
enum class Found {
  by_name,    ///< the user named it: anything goes, owner and mode are not checked
  in_system,  ///< in a directory of the administrator's: any owner, but not writable by all users
  in_home,    ///< HOME may be another user's (sudo): only we or root
};

/// Reads a TOML file; nothing when there is no such file. Throws CommandError (config) with line
/// and column when the file is not TOML, has a section, or sets something that is no setting, and
/// when it cannot be read, or another may have written it. The error repeats nothing of the file's
/// text: a user who runs us with other rights may name any file.
std::optional<ConfigFile> read_config_file(const std::string& path, Found found);

}  // namespace redlock::cli
