#include "cli/version.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "cli/build.hpp"
#include "cli/option_rows.hpp"
#include "store/registry.hpp"

namespace redlock::cli {
namespace {

/// The components that are used in this way: `Lua 5.1.5 (MIT), Asio 1.22.1 (BSL-1.0)`.
std::string components_that_are(std::string_view how) {
  std::vector<std::string> texts;
  for (const Component& component : build::components) {
    if (component.how != how) continue;
    texts.push_back(
        fmt::format("{} {} ({})", component.name, component.version, component.licence));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

/// The distinct ways in which components are used, in order of first appearance.
std::vector<std::string_view> ways() {
  std::vector<std::string_view> found;
  for (const Component& component : build::components) {
    if (std::ranges::find(found, component.how) == found.end()) found.push_back(component.how);
  }
  return found;
}

}  // namespace

std::string version_text() {
  std::string text = fmt::format("redlock-cli {}\n", REDLOCK_VERSION);
  text += fmt::format("commit: {}\n", build::commit);
  text += fmt::format("compiler: {}\n", build::compiler);
  for (const std::string_view way : ways()) {
    text += fmt::format("{}: {}\n", way, components_that_are(way));
  }
  text += fmt::format("servers: {}\n", fmt::join(stores().prefixes(), " "));
  return text + fmt::format("isolation: {}\n", option::isolate.operand());
}

}  // namespace redlock::cli
