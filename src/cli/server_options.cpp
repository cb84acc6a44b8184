#include "cli/server_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "cli/command_error.hpp"
#include "core/lease_handle.hpp"
#include "support/text.hpp"

namespace redlock::cli {
namespace {

constexpr std::string_view no_server =
    "no server is set; name one with -S redis://HOST:6379, in REDLOCK_SERVER, or as server = \"redis://HOST:6379\" in "
    "~/.config/redlock-cli/config.toml or /etc/redlock-cli.toml; -S local: locks on this host alone";

/// The URLs, one by one: each value may be a comma list.
std::vector<std::string> urls_of(const Setting& setting) {
  std::vector<std::string> urls;
  for (const std::string& value : setting.values) {
    std::size_t begin = 0;
    for (;;) {
      const std::size_t comma = value.find(',', begin);
      urls.push_back(value.substr(begin, comma - begin));
      if (comma == std::string::npos) break;
      begin = comma + 1;
    }
  }
  return urls;
}

std::optional<std::string> default_password(const Settings& settings) {
  if (const auto path = settings.text("password-file")) {
    std::ifstream file(*path);
    std::string password;
    if (!file || !std::getline(file, password)) {
      Settings::refuse(*settings.find("password-file"), fmt::format("cannot read a password from {}", escape_for_terminal(*path)));
    }
    return password;
  }
  const char* password = std::getenv("REDISCLI_AUTH");
  if (password == nullptr || password[0] == '\0') return std::nullopt;
  return std::string(password);
}

/// The server's name without its database: two databases of one process fail together, so they are one vote.
std::string process_of(redis::Endpoint endpoint) {
  endpoint.database = 0;
  return endpoint.name();
}

local::Place read_place(const Setting& setting, const std::string& url) {
  auto place = local::parse_place(url);
  if (!place) throw CommandError(ExitCode::config, fmt::format("{}: wrong server URL: {}", setting.where, place.error()));
  return std::move(*place);
}

redis::Endpoint read_endpoint(const Setting& setting, const std::string& url) {
  if (url.empty()) {
    // Most often a variable that a CI system did not fill in: say more than "wrong URL", and never fall back to anything.
    throw CommandError(ExitCode::config, fmt::format("{}: the server is empty; {}", setting.where, no_server));
  }
  auto endpoint = redis::parse_endpoint(url);
  if (!endpoint) throw CommandError(ExitCode::config, fmt::format("{}: wrong server URL: {}", setting.where, endpoint.error()));
  if (endpoint->password && setting.origin == Setting::Origin::line) {
    Settings::refuse(setting,
                     "a password on the command line can be read by everybody on this machine; put the URL into REDLOCK_SERVER or a "
                     "configuration file, or the password into REDISCLI_AUTH or --password-file");
  }
  return *endpoint;
}

std::vector<redis::Endpoint> read_endpoints(const Settings& settings, const Setting& setting, const std::vector<std::string>& urls) {
  std::vector<redis::Endpoint> endpoints;
  const auto user = settings.text("user");
  const auto password = default_password(settings);
  for (const std::string& url : urls) {
    redis::Endpoint endpoint = read_endpoint(setting, url);
    if (!endpoint.user && user) endpoint.user = *user;
    if (!endpoint.password && password) endpoint.password = *password;
    const std::string name = process_of(endpoint);
    const bool twice = std::any_of(endpoints.begin(), endpoints.end(), [&](const auto& other) { return process_of(other) == name; });
    if (twice)
      throw CommandError(ExitCode::config,
                         fmt::format("{}: {} is named twice; the same server has but one vote", setting.where, escape_for_terminal(name)));
    endpoints.push_back(std::move(endpoint));
  }
  return endpoints;
}

}  // namespace

ServerOptions read_server_options(const Settings& settings) {
  const auto setting = settings.find("server");
  if (!setting) throw CommandError(ExitCode::config, std::string(no_server));

  ServerOptions options;
  const std::vector<std::string> urls = urls_of(*setting);
  if (std::any_of(urls.begin(), urls.end(), local::is_place)) {
    if (urls.size() > 1) {
      throw CommandError(ExitCode::config,
                         fmt::format("{}: local: locks on this host alone, so it cannot be one of several servers", setting->where));
    }
    options.local = read_place(*setting, urls.front());
  } else {
    options.endpoints = read_endpoints(settings, *setting, urls);
  }
  options.timeout = settings.duration("server-timeout");
  if (options.timeout && *options.timeout < Milliseconds(1)) Settings::refuse(*settings.find("server-timeout"), "must be at least 1ms");
  return options;
}

std::string fingerprint(const ServerOptions& options) {
  std::vector<std::string> names;
  if (options.local) names.push_back(options.local->name());
  for (const redis::Endpoint& endpoint : options.endpoints) names.push_back(endpoint.name());
  return server_set_fingerprint(std::move(names));
}

}  // namespace redlock::cli
