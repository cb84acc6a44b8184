#pragma once

#include <span>
#include <string>
#include <string_view>

namespace redlock::cli {

/// The commands, as bits: an option says which of them take it.
enum Commands : unsigned {
  for_run = 1U << 0U,
  for_acquire = 1U << 1U,
  for_extend = 1U << 2U,
  for_release = 1U << 3U,
  for_status = 1U << 4U,
  for_doctor = 1U << 5U,
};
inline constexpr unsigned takes_lock = for_run | for_acquire;
inline constexpr unsigned has_lease = for_extend | for_release;
inline constexpr unsigned every_command = takes_lock | has_lease | for_status | for_doctor;

struct CommandSpec {
  Commands bit;
  std::string_view name;
  std::string_view usage;    ///< what follows `redlock-cli NAME`
  std::string_view summary;  ///< one line
  std::string_view details;  ///< for --help: what it does, and examples
};

enum class OptionKind {
  flag,   ///< no value
  value,  ///< one value; given twice is an error
  list,   ///< may be repeated
};

/// Where an option may come from, besides the command line.
enum class OptionSource {
  line,      ///< nowhere else
  variable,  ///< REDLOCK_NAME too
  anywhere,  ///< REDLOCK_NAME and the configuration files
};

/// One option. The table is the single list: the parser, the variables, the configuration files and --help are made from it, and a test
/// compares the man page and the completion with it.
struct OptionSpec {
  std::string_view flags;  ///< all spellings, e.g. "-t,--ttl"
  std::string_view name;   ///< the long name that variables and files use
  OptionKind kind;
  std::string_view operand;  ///< what --help calls the value
  unsigned commands;
  OptionSource source;
  std::string_view help;
  std::string_view fallback = {};  ///< what holds where it is set nowhere, as `doctor --settings` shows it; empty: nothing does
};

std::span<const CommandSpec> command_table();
std::span<const OptionSpec> option_table();

const OptionSpec* find_option(std::string_view name);

/// REDLOCK_SERVER_TIMEOUT for `server-timeout`.
std::string variable_of(const OptionSpec& option);

}  // namespace redlock::cli
