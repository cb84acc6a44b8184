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
#include <numeric>
#include <sstream>
#include <utility>

#include "run/command_error.hpp"
#include "cli/option_table.hpp"
#include "support/text.hpp"

namespace redlock::cli {
namespace {

constexpr std::string_view expected = "lines such as: server = \"redis://host:6379\"";

constexpr std::string_view system_config = "/etc/redlock-cli.toml";

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw CommandError(ExitCode::config, fmt::format("{}: {}", escape_for_terminal(path), why));
}

struct UserDirectory {
  std::string home;    ///< as the environment names it
  std::string config;  ///< in there, or the same
};

/// Where the user's configuration lies; nothing when there is no such place (no XDG_CONFIG_HOME, no
/// HOME, no passwd entry).
std::optional<UserDirectory> user_config_directory() {
  const char* xdg = std::getenv("XDG_CONFIG_HOME");
  if (xdg != nullptr && xdg[0] == '/')
    return UserDirectory{xdg, xdg};  // the specification: a relative path is to be ignored
  const char* home = std::getenv("HOME");
  if (home == nullptr || home[0] == '\0') {
    const passwd* entry = ::getpwuid(::getuid());
    home = entry != nullptr ? entry->pw_dir : nullptr;
  }
  if (home == nullptr || home[0] != '/') return std::nullopt;
  return UserDirectory{home, std::string(home) + "/.config"};
}

/// Whether we may not even ask if the file is there, in a directory that is not ours.
bool is_closed_to_us(const std::string& home, const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 || errno != EACCES) return false;
  return ::stat(home.c_str(), &info) != 0 || info.st_uid != ::geteuid();
}

/// How many letters must change to make one word of the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

/// The setting that was meant; empty when none is near.
std::string hint_for(std::string_view name) {
  constexpr std::size_t farthest = 2;
  for (const OptionSpec& option : option_table()) {
    if (option.source != OptionSource::anywhere || name.size() > option.name.size() + farthest)
      continue;
    if (distance(name, option.name) <= farthest)
      return fmt::format("; did you mean '{}'?", option.name);
  }
  return "";
}

/// `line 7: `, of the last line that begins so, as CLI11 does not tell; empty when there is none.
std::string line_of(const std::string& text, std::string_view beginning) {
  constexpr std::string_view before = " \t\"'[";
  beginning.remove_prefix(std::min(beginning.find_first_not_of(before), beginning.size()));
  std::istringstream lines(text);
  std::string line;
  int found = 0;
  for (int number = 1; std::getline(lines, line); ++number) {
    const std::size_t start = std::min(line.find_first_not_of(before), line.size());
    if (line.compare(start, beginning.size(), beginning) == 0) found = number;
  }
  return found == 0 ? "" : fmt::format("line {}: ", found);
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
  const std::string text = without_comments(path, stream);

  ConfigFile file{path, {}};
  std::vector<CLI::ConfigItem> items;
  try {
    std::istringstream lines(text);
    items = CLI::ConfigTOML().from_config(lines);
  } catch (const CLI::Error&) {
    refuse(path, "is not a list of " + std::string(expected));
  }
  for (const CLI::ConfigItem& item : items) {
    const std::string& beginning = item.parents.empty() ? item.name : item.parents.front();
    const auto refuse_line = [&](const std::string& why) {
      refuse(path, line_of(text, beginning) + why);
    };
    if (!item.parents.empty())
      refuse_line("sections are not known here, only " + std::string(expected));
    const OptionSpec* option = find_option(item.name);
    if (option == nullptr) {
      refuse_line(
          fmt::format("this is no setting; expected are {}{}", expected, hint_for(item.name)));
    }
    if (option->source != OptionSource::anywhere) {
      refuse_line(fmt::format("{} belongs on the command line, not in a file", option->name));
    }
    if (!file.values.emplace(item.name, item.inputs).second) {
      refuse_line(fmt::format("{} is set twice", option->name));
    }
  }
  return file;
}

}  // namespace redlock::cli
