#pragma once

#include <optional>
#include <string>
#include <vector>

namespace redlock::output {

/// An option that may be set outside the command line.
struct ShownSetting {
  /// What the option is set to, and where.
  struct Value {
    std::string text;   ///< may be from elsewhere
    std::string where;  ///< printable
  };
  std::string name;
  std::optional<Value> value;  ///< nothing: set nowhere
  std::string fallback;        ///< the default; empty: none
};

/// `doctor --settings`: `name = value (where)`, a line each; for one that is set nowhere, its
/// default.
std::string settings_text(const std::vector<ShownSetting>& settings);

/// The same as JSON on one line, without a newline:
/// {"command","settings":[{"name","value","where","default"},…]}, null where there is none.
std::string settings_json(const std::vector<ShownSetting>& settings);

}  // namespace redlock::output
