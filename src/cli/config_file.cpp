#include "cli/config_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

// The parser is compiled into this file, because a shared library would be loaded at every start.
// Some of its assertions fail on text that is not TOML, such as `[!`, just before it reports the
// error properly. So they are disabled, also as the assumptions that Clang derives from them in a
// release.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expression) static_cast<void>(0)
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

#include <algorithm>
#include <array>
#include <cerrno>

#include "cli/option_rows.hpp"
#include "cli/spelling.hpp"
#include "commands/command_error.hpp"
#include "store/registry.hpp"
#include "support/kernel_calls.hpp"
#include "support/text.hpp"
#include "support/unique_fd.hpp"

namespace redlock::cli {
namespace {

std::string expected() {
  return fmt::format("lines such as: server = \"{}\"", stores().example());
}

[[noreturn]] void refuse(const std::string& path, std::string_view why) {
  throw CommandError(ExitCode::config, fmt::format("{}: {}", escape_for_terminal(path), why));
}

[[noreturn]] void refuse(const std::string& path, const toml::source_position& at,
                         std::string_view why) {
  refuse(path, fmt::format("line {}, column {}: {}", at.line, at.column, why));
}

constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

/// More than any configuration needs.
constexpr std::size_t max_bytes = std::size_t{1024} * 1024;

void refuse_other_writers(const std::string& path, int fd, Found found) {
  if (found == Found::by_name) return;
  struct stat info {};
  if (kernel::fstat(fd, info) != 0) refuse(path, errno_text(errno));
  const bool is_device = S_ISCHR(info.st_mode);
  if (!is_device && (info.st_mode & S_IWOTH) != 0)
    refuse(path, "every user of this machine can write to it; chmod o-w");
  if (found == Found::in_home && info.st_uid != 0 && info.st_uid != kernel::effective_user()) {
    refuse(path, fmt::format("it belongs to another user (uid {}); set HOME to the home of uid {}, "
                             "or name the file with --config",
                             info.st_uid, kernel::effective_user()));
  }
}

/// Limits the bytes while reading, because the reported size of a file in /proc is zero.
std::string read_text(const std::string& path, Found found) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) refuse(path, errno_text(errno));
  refuse_other_writers(path, fd.get(), found);
  std::string text;
  std::array<char, 4096> part{};
  for (;;) {
    const ssize_t length = ::read(fd.get(), part.data(), part.size());
    if (length < 0 && errno == EINTR) continue;
    if (length < 0) refuse(path, errno_text(errno));
    if (length == 0) return text;
    text.append(part.data(), static_cast<std::size_t>(length));
    if (text.size() > max_bytes) refuse(path, fmt::format("is longer than {} bytes", max_bytes));
  }
}

/// Only numbers contain dots, the names of settings do not.
constexpr std::size_t max_dots = 256;

/// The position after the quoted text that begins at `begin`.
std::size_t end_of_quoted(std::string_view text, std::size_t begin) {
  const char quote = text[begin];
  const std::string three(3, quote);
  const bool has_lines = text.substr(begin).starts_with(three);
  std::size_t at = begin + (has_lines ? 3 : 1);
  while (at < text.size()) {
    if (quote == '"' && text[at] == '\\') {
      at += 2;
    } else if (!has_lines && (text[at] == quote || text[at] == '\n')) {
      return at + 1;
    } else if (has_lines && text.substr(at).starts_with(three)) {
      at += 3;
      while (at < text.size() && text[at] == quote) ++at;  // up to two belong to the text
      return at;
    } else {
      ++at;
    }
  }
  return text.size();
}

/// The library makes a nested table for each part of a dotted name and destroys them recursively,
/// so that 20,000 parts overflow the stack. Hence the dots outside of quotes and comments are
/// counted first. The count may be wrong after an error in the text, but the parser builds no
/// tables there.
void refuse_many_dots(const std::string& path, std::string_view text) {
  std::size_t dots = 0;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"' || c == '\'') {
      at = end_of_quoted(text, at);
    } else if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
    } else {
      if (c == '.' && ++dots > max_dots) {
        refuse(path, fmt::format("sections are not known here, only {}", expected()));
      }
      ++at;
    }
  }
}

toml::table parse(const std::string& path, const std::string& text) {
  toml::parse_result result = toml::parse(text);
  if (result) return std::move(result).table();

  // The library's own description quotes the text that it found, so only the kind of error is
  // passed on.
  const toml::parse_error& error = result.error();
  const bool twice = error.description().find("cannot redefine") != std::string_view::npos;
  refuse(path, error.source().begin,
         twice ? "this name was set before"
               : fmt::format("not TOML; expected are {}; text stands in quotes", expected()));
}

/// The text of a file, from the beginning of a region on.
std::string_view text_at(std::string_view text, const toml::source_region& region) {
  for (toml::source_index line = 1; line < region.begin.line; ++line) {
    text.remove_prefix(text.find('\n') + 1);
  }
  const auto drop_characters = [&text](toml::source_index count) {
    for (; count > 0; --count) {
      do {
        text.remove_prefix(1);
      } while (!text.empty() && (static_cast<unsigned char>(text.front()) & 0xc0U) == 0x80U);
    }
  };
  drop_characters(region.begin.column - 1);
  // The region is a number or the like, so each column is one byte.
  return text.substr(0, region.end.column - region.begin.column);
}

/// Digits with at most one point, as in a duration. The other forms of TOML, such as `1e3`, `0x1E`
/// and
/// `+30`, are refused, because the command line would not read them as the same number.
bool is_plain_number(std::string_view text) {
  return text.find_first_not_of("0123456789.") == std::string_view::npos &&
         std::count(text.begin(), text.end(), '.') <= 1;
}

/// A value in the spelling of the command line; refuses a date, a table and the like. A number
/// keeps the file's spelling, so that 1.10 does not become 1.1.
std::string text_of(const std::string& path, std::string_view text, const toml::node& node) {
  const toml::source_position at = node.source().begin;
  if (const auto* quoted = node.as_string()) {
    if (quoted->get().find('\0') != std::string::npos) refuse(path, at, "a value holds no NUL");
    return quoted->get();
  }
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  if (!node.is_number()) {
    refuse(path, at, "a value is a string, a number, true, false or a list of these");
  }
  const std::string_view number = text_at(text, node.source());
  if (!is_plain_number(number)) {
    refuse(path, at, "a number is digits with at most one dot; text stands in quotes");
  }
  return std::string(number);
}

std::vector<std::string> values_of(const std::string& path, std::string_view text,
                                   const toml::node& node) {
  std::vector<std::string> values;
  if (const toml::array* list = node.as_array()) {
    for (const toml::node& element : *list) values.push_back(text_of(path, text, element));
  } else {
    values.push_back(text_of(path, text, node));
  }
  return values;
}

/// Suggests the setting that was probably meant, among those that a file may contain.
std::string hint_for(std::string_view name) {
  std::vector<std::string_view> names;
  for (const OptionRow* option : option::all_options) {
    if (option->spec().source == OptionSource::anywhere) names.push_back(option->name());
  }
  return did_you_mean(name, names);
}

const OptionRow& setting_of(const std::string& path, const toml::key& key, const toml::node& node) {
  const toml::source_position at = key.source().begin;
  if (node.is_table() || node.is_array_of_tables()) {
    refuse(path, at, fmt::format("sections are not known here, only {}", expected()));
  }
  const auto option = std::find_if(option::all_options.begin(), option::all_options.end(),
                                   [&](const OptionRow* row) { return row->name() == key.str(); });
  if (option == option::all_options.end()) {
    refuse(path, at, fmt::format("unknown setting; write {}{}", expected(), hint_for(key.str())));
  }
  if ((*option)->spec().source != OptionSource::anywhere) {
    refuse(path, at, fmt::format("{} belongs on the command line, not in a file", key.str()));
  }
  return **option;
}

}  // namespace

std::optional<ConfigFile> read_config_file(const std::string& path, Found found) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    refuse(path, errno_text(errno));
  }
  // /dev/null is the usual way to say "no settings".
  const bool is_null = S_ISCHR(info.st_mode) && info.st_rdev == makedev(1, 3);
  if (!S_ISREG(info.st_mode) && !is_null) refuse(path, "is not a regular file");

  std::string text = read_text(path, found);
  if (text.starts_with(byte_order_mark)) text.erase(0, byte_order_mark.size());
  refuse_many_dots(path, text);
  const toml::table table = parse(path, text);
  ConfigFile file{path, {}};
  for (const auto& [key, node] : table) {
    const OptionRow& option = setting_of(path, key, node);
    file.values.emplace(&option, values_of(path, text, node));
  }
  return file;
}

}  // namespace redlock::cli
