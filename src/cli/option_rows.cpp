#include "cli/option_rows.hpp"

#include <fmt/format.h>

#include "cli/config_paths.hpp"
#include "core/validity.hpp"
#include "support/duration.hpp"

namespace redlock::cli::option {

std::string ttl_default() {
  return fmt::format("{}; none for extend, nor for acquire without --while-pid or --detach",
                     format_duration(default_ttl));
}

std::string grace_default() {
  return fmt::format("a fifth of the ttl, at most {}", format_duration(max_default_grace));
}

std::string stop_wait_default() {
  return "the ttl of the holder";
}

std::string server_timeout_default() {
  return fmt::format("5 % of the ttl, {} to {}", format_duration(min_default_timeout),
                     format_duration(max_default_timeout));
}

std::string config_default() {
  return fmt::format("~/.config/redlock-cli/config.toml, then {}", system_config);
}

}  // namespace redlock::cli::option
