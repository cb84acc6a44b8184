#include "commands/doctor.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/command_session.hpp"
#include "cli/commands.hpp"
#include "cli/option_rows.hpp"
#include "cli/read_lock_options.hpp"
#include "cli/redact.hpp"
#include "commands/command_error.hpp"
#include "output/doctor.hpp"

namespace redlock::cli {
namespace {

std::string shown_value(const OptionRow& option, const Setting& setting) {
  std::string value;
  for (const std::string& part : setting.values) {
    const std::optional<std::string> shown =
        &option == &option::server ? shown_servers(part) : shown_word(part);
    if (!shown) return "not shown: not a valid server URL";
    value += (value.empty() ? "" : ",") + *shown;
  }
  return value;
}

commands::Finish show_settings(const Settings& settings) {
  std::vector<output::ShownSetting> shown;
  for (const OptionRow* option : option::all_options) {
    if (option->spec().source == OptionSource::line) continue;
    output::ShownSetting row{std::string(option->name()), std::nullopt, option->default_text()};
    if (const auto setting = settings.find(*option))
      row.value = {shown_value(*option, *setting), setting->where};
    shown.push_back(std::move(row));
  }
  commands::print_result(settings.get(option::json) ? output::settings_json(shown) + "\n"
                                                    : output::settings_text(shown));
  return commands::Finish{to_int(ExitCode::done)};
}

}  // namespace

commands::Finish doctor_command(const Settings& settings) {
  if (settings.get(option::settings)) return show_settings(settings);
  std::optional<Resource> key;
  if (settings.find(option::key)) {
    const std::vector<Resource> keys = read_keys(settings);
    if (keys.size() != 1)
      throw CommandError(ExitCode::usage, "--key: doctor tries one key at a time");
    key = keys.front();
  }
  const commands::ServerOptions servers = read_server_options(settings);
  const commands::SessionOptions options = session_options(settings);
  commands::Session session(options, servers, timeout_without_ttl(servers));
  return commands::doctor(session,
                          {.links = commands::links_to(options, servers), .key = std::move(key)});
}

}  // namespace redlock::cli
