#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/option_types.hpp"

namespace redlock::cli {

/// The settings of a configuration file.
struct ConfigFile {
  std::string path;

  /// Each value in the spelling of the command line; an array has several.
  std::map<const OptionRow*, std::vector<std::string>> values;
};

/// How the file was found. This determines who may own and write it, because a file that chooses
/// the servers can disable the lock.
enum class Found {
  by_name,    ///< named by the user: owner and mode are not checked
  in_system,  ///< in the administrator's directory: any owner, but not writable by all users
  in_home,    ///< below HOME, which may be another user's (sudo): owned by this user or root
};

/// Reads a TOML file; nullopt if it does not exist. Throws CommandError (config) if the file cannot
/// be read or another user may have written it, and, with line and column, if it is not TOML, has a
/// section or sets an unknown setting. The message quotes none of the file's text: a user who runs
/// this program with other rights (sudo) may name any file.
std::optional<ConfigFile> read_config_file(const std::string& path, Found found);

}  // namespace redlock::cli
