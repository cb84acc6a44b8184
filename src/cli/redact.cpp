#include "cli/redact.hpp"

#include <algorithm>
#include <string_view>

namespace redlock::cli {
namespace {

constexpr std::string_view separator = "://";

}  // namespace

std::string without_logins(std::string text) {
  for (std::size_t scheme = text.find(separator); scheme != std::string::npos; scheme = text.find(separator, scheme + 1)) {
    const std::size_t begin = scheme + separator.size();
    std::size_t end = text.find_first_of(" \t\n", begin);
    if (const std::size_t query = text.find("?sentinel-", begin); query < end) {
      text.replace(query + 1, std::min(end, text.size()) - query - 1, "...");
      end = query;
    }
    const std::size_t at = text.substr(0, end).rfind('@');
    if (at != std::string::npos && at > begin) text.replace(begin, at - begin, "...");
  }
  return text;
}

std::string without_logins_of_servers(const std::string& value) {
  constexpr auto none = std::string::npos;
  std::string text;
  for (std::size_t begin = 0; begin < value.size();) {
    // A URL begins behind the last comma before its scheme; a comma elsewhere may be one of a password's.
    const std::size_t scheme = value.find(separator, begin);
    const std::size_t before = scheme == none ? none : value.rfind(',', scheme);
    const bool has_scheme = scheme != none && (before == none || before < begin);
    const std::size_t login = has_scheme ? scheme + separator.size() : begin;
    const std::size_t next = has_scheme ? value.find(separator, login) : scheme;
    const std::size_t comma = next == none ? none : value.rfind(',', next);
    const std::size_t end = comma == none || comma < login ? value.size() : comma + 1;
    std::string url = value.substr(begin, end - begin);
    const std::size_t at = url.rfind('@');
    if (at != none && at > login - begin) url.replace(login - begin, at - (login - begin), "...");
    text += without_logins(std::move(url));
    begin = end;
  }
  return text;
}

}  // namespace redlock::cli
