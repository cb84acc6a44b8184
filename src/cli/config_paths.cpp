#include "cli/config_paths.hpp"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "support/environment.hpp"
#include "support/kernel_calls.hpp"

namespace redlock::cli {
namespace {

struct UserDirectory {
  std::string home;    ///< as the environment gives it
  std::string config;  ///< below home, or the same
};

/// The directory of the user's configuration; nullopt without XDG_CONFIG_HOME, HOME and passwd
/// entry.
std::optional<UserDirectory> user_config_directory() {
  const std::string xdg = environment_value("XDG_CONFIG_HOME");
  // The XDG specification requires that a relative path is ignored.
  if (xdg.starts_with('/')) return UserDirectory{xdg, xdg};

  std::string home = environment_value("HOME");
  if (home.empty()) {
    const passwd* entry = ::getpwuid(::getuid());
    if (entry != nullptr) home = entry->pw_dir;
  }
  if (!home.starts_with('/')) return std::nullopt;
  return UserDirectory{home, home + "/.config"};
}

/// Whether the directory belongs to another user and may not even be searched for the file.
bool is_closed_to_us(const std::string& home, const std::string& path) {
  struct stat info {};
  if (kernel::stat(path.c_str(), info) == 0 || errno != EACCES) return false;
  return kernel::stat(home.c_str(), info) != 0 || info.st_uid != kernel::effective_user();
}

}  // namespace

ConfigPaths config_paths(const std::optional<std::string>& chosen) {
  if (chosen) return {{*chosen}, std::nullopt};
  ConfigPaths paths;
  if (const auto directory = user_config_directory()) {
    const std::string path = directory->config + "/redlock-cli/config.toml";
    if (is_closed_to_us(directory->home, path)) {
      paths.skipped = path;
    } else {
      paths.strongest_first.push_back(path);
    }
  }
  paths.strongest_first.emplace_back(system_config);
  return paths;
}

bool is_withheld(const std::string& path) {
  struct stat info {};
  return path == system_config && kernel::stat(path.c_str(), info) == 0 && S_ISREG(info.st_mode) &&
         info.st_uid == 0 && ::access(path.c_str(), R_OK) != 0 && errno == EACCES;
}

}  // namespace redlock::cli
