#include "cli/server_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>

#include "run/command_error.hpp"
#include "cli/console.hpp"
#include "cli/options.hpp"
#include "cli/redact.hpp"
#include "core/decision.hpp"
#include "core/lease_handle.hpp"
#include "support/duration.hpp"
#include "support/text.hpp"

namespace redlock::cli {
namespace {

constexpr std::string_view no_server =
    "no server is set; name one with -S redis://HOST:6379, in REDLOCK_SERVER, or as server = \"redis://HOST:6379\" in "
    "~/.config/redlock-cli/config.toml or /etc/redlock-cli.toml; -S local: locks on this host alone";

std::vector<std::string> urls_of(const Setting& setting) {
  std::vector<std::string> urls;
  for (const std::string& value : setting.values) {
    for (std::string& url : split_servers(value)) urls.push_back(std::move(url));
  }
  return urls;
}

struct DefaultPassword {
  std::string text;
  bool is_general;  ///< set for whatever server it may fit, as redis-cli uses it
};

std::optional<DefaultPassword> default_password(const Settings& settings) {
  if (const auto path = settings.get(option::password_file)) {
    std::ifstream file(*path);
    std::string password;
    if (!file || !std::getline(file, password)) {
      Settings::refuse(*settings.find(option::password_file),
                       fmt::format("cannot read a password from {}", escape_for_terminal(*path)));
    }
    return DefaultPassword{std::move(password), /*is_general=*/false};
  }
  const char* password = std::getenv("REDISCLI_AUTH");
  if (password == nullptr || password[0] == '\0') return std::nullopt;
  return DefaultPassword{password, /*is_general=*/true};
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
  const bool has_password = endpoint->password || endpoint->sentinel_password;
  if (has_password && setting.origin == Setting::Origin::line) {
    Settings::refuse(setting,
                     "a password on the command line can be read by everybody on this machine; put the URL into REDLOCK_SERVER or a "
                     "configuration file, or the password into REDISCLI_AUTH or --password-file");
  }
  return *endpoint;
}

std::vector<redis::Endpoint> read_endpoints(const Settings& settings, const Setting& setting, const std::vector<std::string>& urls) {
  std::vector<redis::Endpoint> endpoints;
  const auto user = settings.get(option::user);
  const auto password = default_password(settings);
  for (const std::string& url : urls) {
    redis::Endpoint endpoint = read_endpoint(setting, url);
    if (!endpoint.user && user) endpoint.user = *user;
    if (!endpoint.password && password) {
      endpoint.password = password->text;
      // Who names a user wants to be that user.
      endpoint.password_is_general = password->is_general && !endpoint.user;
    }
    const std::string name = process_of(endpoint);
    const bool twice = std::any_of(endpoints.begin(), endpoints.end(), [&](const auto& other) { return process_of(other) == name; });
    if (twice)
      throw CommandError(ExitCode::config,
                         fmt::format("{}: {} is named twice; the same server has but one vote", setting.where, escape_for_terminal(name)));
    endpoints.push_back(std::move(endpoint));
  }
  return endpoints;
}

/// Options that mean something for TLS alone.
constexpr std::array<const OptionRow*, 6> tls_options{&option::cacert, &option::cacertdir,
                                                      &option::cert,   &option::cert_key,
                                                      &option::sni,    &option::insecure};

/// Somebody who names a CA believes in an encryption that is not there.
void refuse_tls_options(const Settings& settings) {
  for (const OptionRow* option : tls_options) {
    const auto setting = settings.find(*option);
    if (setting && setting->origin == Setting::Origin::line) {
      Settings::refuse(*setting, "no server is named with rediss://, sentinels:// or clusters://, so nothing would be encrypted");
    }
  }
}

std::shared_ptr<const redis::TlsContext> read_tls(const Settings& settings) {
  redis::TlsSettings tls;
  tls.ca_file = settings.get(option::cacert);
  tls.ca_directory = settings.get(option::cacertdir);
  tls.certificate = settings.get(option::cert);
  tls.key = settings.get(option::cert_key);
  tls.name = settings.get(option::sni);
  tls.insecure = settings.get(option::insecure);
  if (tls.key && !tls.certificate)
    Settings::refuse(*settings.find(option::cert_key), "a key needs its certificate: --cert");
  if (tls.name && (tls.name->empty() || tls.name->find('\0') != std::string::npos))
    Settings::refuse(*settings.find(option::sni), "is empty");
  auto context = redis::TlsContext::make(tls);
  if (!context) {
    const auto& error = context.error();
    if (error.setting.empty()) throw CommandError(ExitCode::os_error, error.text);
    for (const OptionRow* option : tls_options) {
      if (option->name() == error.setting) Settings::refuse(*settings.find(*option), error.text);
    }
  }
  if (tls.insecure) {
    make_console(settings).error(settings.find(option::insecure)->where +
                                 ": certificates are not verified; whoever is in between can read "
                                 "all and grant a lock that is none");
  }
  return *context;
}

}  // namespace

run::ServerOptions read_server_options(const Settings& settings) {
  const auto setting = settings.find(option::server);
  if (!setting) throw CommandError(ExitCode::config, std::string(no_server));

  run::ServerOptions options;
  const std::vector<std::string> urls = urls_of(*setting);
  if (urls.empty()) throw CommandError(ExitCode::config, fmt::format("{}: the list is empty; {}", setting->where, no_server));
  if (std::any_of(urls.begin(), urls.end(), local::is_place)) {
    if (urls.size() > 1) {
      throw CommandError(ExitCode::config,
                         fmt::format("{}: local: locks on this host alone, so it cannot be one of several servers", setting->where));
    }
    options.local = read_place(*setting, urls.front());
  } else {
    options.endpoints = read_endpoints(settings, *setting, urls);
  }
  const bool uses_tls = std::any_of(options.endpoints.begin(), options.endpoints.end(), [](const auto& endpoint) { return endpoint.tls; });
  if (uses_tls) {
    options.tls = read_tls(settings);
  } else {
    refuse_tls_options(settings);
  }
  const Duration guard = settings.get(option::restart_guard);
  if (options.endpoints.size() >= smallest_guarded) options.restart_guard = guard;
  options.replicas = static_cast<unsigned>(settings.get(option::replicas));
  if (options.local && options.replicas > 0) {
    Settings::refuse(*settings.find(option::replicas), "this host's own store has none");
  }
  options.timeout = settings.get(option::server_timeout);
  return options;
}

void raise_restart_guard(const Settings& settings, run::ServerOptions& options, const OptionRow& option,
                         Duration span) {
  if (options.restart_guard <= Duration::zero() || span <= options.restart_guard) return;
  const std::string length = format_duration(span);
  make_console(settings).detail(
      fmt::format("--restart-guard is raised from {} to {}, the {}: every client of this key needs "
                  "--restart-guard {}",
                  format_duration(options.restart_guard), length, option.spelling(), length));
  options.restart_guard = span;
}

}  // namespace redlock::cli
