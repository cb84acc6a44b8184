#include "cli/config_file.hpp"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "cli/command_error.hpp"
#include "cli/option_table.hpp"
#include "cli/redact.hpp"
#include "support/text.hpp"

namespace redlock::cli {
namespace {

constexpr std::string_view system_config = "/etc/redlock-cli.toml";

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw CommandError(ExitCode::config, fmt::format("{}: {}", escape_for_terminal(path), without_logins(why)));
}

/// The user's configuration directory; nothing when there is none (no XDG_CONFIG_HOME, no HOME, no passwd entry).
std::optional<std::string> user_config_directory() {
  const char* xdg = std::getenv("XDG_CONFIG_HOME");
  if (xdg != nullptr && xdg[0] == '/') return std::string(xdg);  // the specification: a relative path is to be ignored
  const char* home = std::getenv("HOME");
  if (home == nullptr || home[0] == '\0') {
    const passwd* entry = ::getpwuid(::getuid());
    home = entry != nullptr ? entry->pw_dir : nullptr;
  }
  if (home == nullptr || home[0] != '/') return std::nullopt;
  return std::string(home) + "/.config";
}

/// CLI11 cuts a line at the first `#`, also within quotes: a list of servers would lose its end. So it gets to see none.
std::string without_comments(const std::string& path, std::istream& stream) {
  std::string text;
  std::string line;
  for (int number = 1; std::getline(stream, line); ++number) {
    if (line.find_first_not_of(" \t") == line.find(';')) line.clear();  // a comment to CLI11, too
    char quote = '\0';
    std::size_t end = 0;
    for (; end < line.size() && (quote != '\0' || line[end] != '#'); ++end) {
      const char c = line[end];
      if (c == '#') refuse(path, fmt::format("line {}: a # within quotes cannot be read; in a URL, write %23", number));
      const bool may_open = end == 0 || std::string_view("=[, \t").find(line[end - 1]) != std::string_view::npos;
      if (quote == '"' && c == '\\') {
        ++end;
      } else if (c == quote) {
        quote = '\0';
      } else if (quote == '\0' && may_open && (c == '"' || c == '\'')) {
        quote = c;
      }
    }
    text.append(line, 0, end).append("\n");
  }
  return text;
}

}  // namespace

bool is_withheld(const std::string& path) {
  struct stat info {};
  return path == system_config && ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == 0 &&
         ::access(path.c_str(), R_OK) != 0 && errno == EACCES;
}

std::vector<std::string> config_paths(const std::optional<std::string>& chosen) {
  if (chosen) return {*chosen};
  std::vector<std::string> paths;
  if (const auto directory = user_config_directory()) paths.push_back(*directory + "/redlock-cli/config.toml");
  paths.emplace_back(system_config);
  return paths;
}

std::optional<ConfigFile> read_config_file(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    refuse(path, std::strerror(errno));
  }
  // /dev/null is how one says "no settings".
  const bool is_null = S_ISCHR(info.st_mode) && info.st_rdev == makedev(1, 3);
  if (!S_ISREG(info.st_mode) && !is_null) refuse(path, "is not a regular file");
  std::ifstream stream(path);
  if (!stream) refuse(path, std::strerror(errno));
  std::istringstream text(without_comments(path, stream));

  ConfigFile file{path, {}};
  std::vector<CLI::ConfigItem> items;
  try {
    items = CLI::ConfigTOML().from_config(text);
  } catch (const CLI::Error& error) {
    refuse(path, escape_for_terminal(error.what()));
  }
  for (const CLI::ConfigItem& item : items) {
    if (!item.parents.empty()) refuse(path, "sections are not known here, only lines such as: server = \"redis://host:6379\"");
    const OptionSpec* option = find_option(item.name);
    if (option == nullptr) refuse(path, fmt::format("there is no setting {}", escape_for_terminal(item.name)));
    if (option->source != OptionSource::anywhere) refuse(path, fmt::format("{} belongs on the command line, not in a file", item.name));
    if (!file.values.emplace(item.name, item.inputs).second) refuse(path, fmt::format("{} is set twice", item.name));
  }
  return file;
}

}  // namespace redlock::cli
