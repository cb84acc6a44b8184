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

}  // namespace redlock::cli
