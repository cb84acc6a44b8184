#include "cli/redact.hpp"

#include <algorithm>
#include <string_view>

#include "store/registry.hpp"

namespace redlock::cli {
namespace {

constexpr std::string_view separator = "://";
constexpr std::string_view hidden = "...";

/// Without surrounding white space: secrets of CI systems and lines of files often end in a
/// newline.
std::string without_margins(std::string_view text) {
  constexpr std::string_view blank = " \t\r\n";
  const std::size_t begin = std::min(text.find_first_not_of(blank), text.size());
  return std::string(text.substr(begin, text.find_last_not_of(blank) + 1 - begin));
}

std::optional<std::string> shown_server(const std::string& url) {
  const auto address = stores().read(url);
  if (!address) return std::nullopt;
  std::string name = (*address)->name();
  if ((*address)->has_login()) {
    name.insert(name.find(separator) + separator.size(), std::string(hidden) + "@");
  }
  return name;
}

/// Whether the word may contain a password: it resembles a server, or has a login or a query.
bool may_hold_login(std::string_view word) {
  if (stores().may_hold_login(word)) return true;
  const std::size_t at = word.rfind('@');
  if (at != word.npos && word.substr(0, at).find(':') != word.npos) return true;
  return word.find(separator) != word.npos && word.find('?') != word.npos;
}

/// The length of the option in a word that also has its value: `--server=` or `-S`.
std::size_t option_part(std::string_view word) {
  if (!word.starts_with('-')) return 0;
  const bool is_long = word.starts_with("--");
  const std::size_t end = is_long ? word.find('=') : 1;
  if (end == word.npos || end + 1 >= word.size()) return 0;
  return may_hold_login(word.substr(0, end)) ? 0 : end + 1;
}

void replace_all(std::string& text, std::string_view what, std::string_view with) {
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
}

}  // namespace

std::vector<std::string> split_servers(const std::string& value) {
  std::vector<std::string> urls;
  std::size_t begin = 0;
  for (;;) {
    const std::size_t comma = value.find(',', begin);
    std::string part = without_margins(std::string_view(value).substr(begin, comma - begin));
    if (begin > 0 && !stores().begins_url(part) && stores().has_hosts(urls.back())) {
      urls.back() += "," + part;
    } else {
      urls.push_back(std::move(part));
    }
    if (comma == std::string::npos) return urls;
    begin = comma + 1;
  }
}

std::optional<std::string> shown_servers(const std::string& value) {
  std::string text;
  for (const std::string& url : split_servers(value)) {
    const auto shown = shown_server(url);
    if (!shown) return std::nullopt;
    text += (text.empty() ? "" : ",") + *shown;
  }
  return text;
}

std::string shown_word(const std::string& word) {
  if (!may_hold_login(word)) return word;
  const std::size_t option = option_part(word);
  return word.substr(0, option) + shown_servers(word.substr(option)).value_or(std::string(hidden));
}

std::string shown_message(std::string text, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (!may_hold_login(word)) continue;
    replace_all(text, word, shown_word(word));
    const std::string value = word.substr(option_part(word));
    replace_all(text, value, shown_word(value));
  }
  return text;
}

}  // namespace redlock::cli
