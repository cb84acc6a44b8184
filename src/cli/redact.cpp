#include "cli/redact.hpp"

#include <algorithm>
#include <string_view>

namespace redlock::cli {

std::string without_logins(std::string text) {
  constexpr std::string_view separator = "://";
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
  std::string text;
  for (std::size_t begin = 0; begin < value.size();) {
    const std::size_t scheme = value.find("://", begin);
    const std::size_t login = scheme == std::string::npos ? begin : scheme + 3;
    // The next URL begins behind the last comma before its scheme; a comma elsewhere may be one of a password's.
    const std::size_t next_scheme = scheme == std::string::npos ? std::string::npos : value.find("://", login);
    const std::size_t comma = next_scheme == std::string::npos ? std::string::npos : value.rfind(',', next_scheme);
    const std::size_t end = comma == std::string::npos || comma < login ? value.size() : comma + 1;
    const std::string url = value.substr(begin, end - begin);
    const std::size_t at = url.rfind('@');
    const std::size_t hidden = login - begin;
    text += at == std::string::npos || at <= hidden ? url : url.substr(0, hidden) + "..." + url.substr(at);
    begin = end;
  }
  return without_logins(text);
}

}  // namespace redlock::cli
