#include "cli/read_server_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "cli/config_paths.hpp"
#include "cli/option_rows.hpp"
#include "cli/redact.hpp"
#include "commands/command_error.hpp"
#include "core/decision.hpp"
#include "core/lease_handle.hpp"
#include "core/validity.hpp"
#include "store/password_file.hpp"
#include "support/duration.hpp"
#include "support/environment.hpp"
#include "support/text.hpp"

namespace redlock::cli {
namespace {

std::string how_to_name_a_server() {
  // Other clients read it. It may be the server of another program, so it is not used without
  // asking.
  if (!environment_value("REDIS_URL").empty())
    return "REDIS_URL is not read; to use that server, set REDLOCK_SERVER=\"$REDIS_URL\"";
  const std::string_view url = stores().example();
  return fmt::format(
      "name one with -S {}, in REDLOCK_SERVER, or as server = \"{}\" in "
      "~/.config/redlock-cli/config.toml or {}; {}",
      url, url, system_config, stores().stand_alone_hint());
}

std::vector<std::string> urls_of(const Setting& setting) {
  std::vector<std::string> urls;
  for (const std::string& value : setting.values) {
    for (std::string& url : split_servers(value)) urls.push_back(std::move(url));
  }
  return urls;
}

DefaultLogin default_login(const Settings& settings) {
  DefaultLogin login;
  login.user = settings.get(option::user);
  if (const auto path = settings.get(option::password_file)) {
    auto file = PasswordFile::open(*path);
    if (!file) {
      Settings::refuse(*settings.find(option::password_file),
                       fmt::format("cannot read a password from {}: {}", escape_for_terminal(*path),
                                   file.error()));
    }
    login.password_file = std::move(*file);
    return login;
  }
  const std::string password = password_in(environment_value("REDISCLI_AUTH"));
  if (password.empty()) return login;
  login.password = password;
  login.password_is_general = true;
  return login;
}

/// `which`: ` (2 of 3)`, or empty for a single server.
std::shared_ptr<const ServerAddress> read_server(const Setting& setting, const std::string& url,
                                                 const std::string& which) {
  if (url.empty()) {
    // Usually a variable that a CI system did not fill in. The message should be more specific than
    // "wrong URL", and there must be no fallback to another server.
    throw CommandError(ExitCode::config, fmt::format("{}: the server is empty{}; {}", setting.where,
                                                     which, how_to_name_a_server()));
  }
  auto address = stores().read(url);
  if (!address) {
    throw CommandError(ExitCode::config, fmt::format("{}: wrong server URL{}: {}", setting.where,
                                                     which, address.error()));
  }
  if ((*address)->has_password() && setting.origin == Setting::Origin::line) {
    Settings::refuse(
        setting,
        "a password on the command line can be read by every user of this machine; put "
        "the URL into REDLOCK_SERVER or a configuration file, or the password into "
        "REDISCLI_AUTH or --password-file");
  }
  return std::move(*address);
}

std::vector<commands::ServerSource> read_servers(const Setting& setting,
                                                 const std::vector<std::string>& urls) {
  std::vector<commands::ServerSource> servers;
  std::set<std::string> processes;
  for (const std::string& url : urls) {
    const std::string which =
        urls.size() == 1 ? "" : fmt::format(" ({} of {})", servers.size() + 1, urls.size());
    const auto address = read_server(setting, url, which);
    const Store& store = address->store();
    if (!store.stands_alone.empty() && urls.size() > 1) {
      throw CommandError(
          ExitCode::config,
          fmt::format("{}: {} {}, so it cannot be one of several servers", setting.where,
                      store.schemes.front().prefix, store.stands_alone));
    }
    const std::string process = address->process();
    if (!processes.insert(process).second) {
      throw CommandError(ExitCode::config,
                         fmt::format("{}: {} is named twice; the same server has only one vote",
                                     setting.where, escape_for_terminal(process)));
    }
    servers.push_back({address, nullptr});
  }
  return servers;
}

/// Options that only apply to TLS.
constexpr std::array<const OptionRow*, 6> tls_options{&option::cacert, &option::cacertdir,
                                                      &option::cert,   &option::cert_key,
                                                      &option::sni,    &option::insecure};

/// Refuses TLS options on the command line if no server uses TLS, because the user expects
/// encryption.
void refuse_tls_options(const Settings& settings) {
  for (const OptionRow* option : tls_options) {
    const auto setting = settings.find(*option);
    if (setting && setting->origin == Setting::Origin::line) {
      Settings::refuse(*setting,
                       fmt::format("no server is named with {}, so nothing would be encrypted",
                                   stores().encrypting_schemes()));
    }
  }
}

TlsSettings read_tls_settings(const Settings& settings) {
  TlsSettings tls;
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
  // OpenSSL would match any subdomain of such a name, or any host.
  if (tls.name && tls.name->starts_with('.'))
    Settings::refuse(*settings.find(option::sni), "a server's name does not begin with a dot");
  return tls;
}

std::shared_ptr<Tls> load_tls(const Settings& settings, const Store& store,
                              const TlsSettings& tls) {
  auto loaded = store.load_tls(tls);
  if (loaded) return std::move(*loaded);
  const TlsSettingError& error = loaded.error();
  for (const OptionRow* option : tls_options) {
    if (option->name() == error.setting) Settings::refuse(*settings.find(*option), error.text);
  }
  throw CommandError(ExitCode::os_error, error.text);
}

/// Loads the TLS settings and gives them to each server that uses TLS; servers of one store share
/// them. Returns whether there is such a server.
bool load_tls(const Settings& settings, std::vector<commands::ServerSource>& servers) {
  std::map<const Store*, std::shared_ptr<Tls>> loaded;
  std::optional<TlsSettings> tls;
  for (commands::ServerSource& server : servers) {
    if (!server.address->uses_tls()) continue;
    if (!tls) tls = read_tls_settings(settings);
    const Store& store = server.address->store();
    auto& own = loaded[&store];
    if (!own) own = load_tls(settings, store, *tls);
    server.tls = own;
  }
  if (!tls) return false;
  if (tls->insecure) {
    make_console(settings).error(settings.find(option::insecure)->where +
                                 ": certificate verification is off: an attacker on the network "
                                 "can grant fake locks");
  }
  return true;
}

}  // namespace

commands::ServerOptions read_server_options(const Settings& settings) {
  const auto setting = settings.find(option::server);
  if (!setting) throw CommandError(ExitCode::config, "no server is set; " + how_to_name_a_server());
  const std::vector<std::string> urls = urls_of(*setting);
  if (urls.empty()) {
    throw CommandError(ExitCode::config, fmt::format("{}: the list is empty; {}", setting->where,
                                                     how_to_name_a_server()));
  }

  commands::ServerOptions options;
  options.servers = read_servers(*setting, urls);
  const auto has_logins = [](const auto& server) { return server.address->store().has_logins; };
  if (std::ranges::any_of(options.servers, has_logins)) options.login = default_login(settings);
  if (!load_tls(settings, options.servers)) refuse_tls_options(settings);

  const Duration guard = settings.get(option::restart_guard);
  if (options.servers.size() >= min_guarded_servers) options.restart_guard = guard;
  options.replicas = static_cast<unsigned>(settings.get(option::replicas));
  for (const commands::ServerSource& server : options.servers) {
    const std::string_view why_not = server.address->store().no_replicas;
    if (options.replicas > 0 && !why_not.empty()) {
      Settings::refuse(*settings.find(option::replicas), std::string(why_not));
    }
  }
  options.timeout = settings.get(option::server_timeout);
  return options;
}

Duration timeout_without_ttl(const commands::ServerOptions& options) {
  return options.timeout.value_or(max_default_timeout);
}

void raise_restart_guard(const Settings& settings, commands::ServerOptions& options,
                         const OptionRow& option, Duration span) {
  if (options.restart_guard <= Duration::zero() || span <= options.restart_guard) return;
  const std::string length = format_duration(span);
  const std::string text = fmt::format(
      "--restart-guard is raised from {} to {}, the {}: every client of this key needs "
      "--restart-guard {}",
      format_duration(options.restart_guard), length, option.spelling(), length);
  const output::Console console = make_console(settings);
  settings.is_on_line(option::restart_guard) ? console.notice(text) : console.detail(text);
  options.restart_guard = span;
  options.guard_cause = option.spelling();
}

}  // namespace redlock::cli
