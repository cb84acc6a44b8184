#include "proc/ci_cookies.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>

namespace redlock::proc {
namespace {

constexpr std::array<std::string_view, 5> cookies{
    "RUNNER_TRACKING_ID=", "JENKINS_NODE_COOKIE=", "JENKINS_SERVER_COOKIE=", "BUILD_ID=",
    "HUDSON_COOKIE="};

bool is_cookie(std::string_view entry) {
  return std::ranges::any_of(cookies,
                             [entry](std::string_view name) { return entry.starts_with(name); });
}

}  // namespace

void hide_ci_cookies() {
  static std::deque<std::string> copies;  // environ points into these until the process ends
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    if (!is_cookie(*entry)) continue;
    copies.emplace_back(*entry);
    std::memset(*entry, 0, copies.back().size());
    *entry = copies.back().data();
  }
}

}  // namespace redlock::proc
