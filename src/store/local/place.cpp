#include "store/local/place.hpp"

#include <unistd.h>

#include <algorithm>

namespace redlock::local {
namespace {

constexpr std::string_view scheme = "local:";

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; });
}

std::string without_needless_slashes(std::string_view path) {
  std::string clean;
  for (const char c : path) {
    if (c != '/' || !clean.ends_with('/')) clean += c;
  }
  if (clean.size() > 1 && clean.ends_with('/')) clean.pop_back();
  return clean;
}

}  // namespace

Result<Place, std::string> parse_place(std::string_view url) {
  const std::string_view path = url.substr(scheme.size());
  // Of the user whose rights count, and independent of all variables: cron and sudo strip them.
  const std::string own = "/run/lock/redlock-cli-" + std::to_string(::geteuid());
  if (path.empty()) return Place{own, true};
  if (!path.starts_with('/')) return unexpected(std::string("it needs an absolute path: local:/directory"));
  if (has_control(path)) return unexpected(std::string("its path holds control characters"));
  const std::string directory = without_needless_slashes(path);
  return Place{directory, directory == own};
}

}  // namespace redlock::local
