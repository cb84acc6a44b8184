#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/diagnosis.hpp"

namespace redlock::output {

/// The findings of `doctor` as a table, one line for each thing that is wrong or unknown, with a
/// summary as the last line. Pure; everything from elsewhere is returned escaped for the terminal.
std::string diagnosis_text(const SetDiagnosis& set, std::size_t width);

/// The same as JSON on one line, without a newline:
/// {"command","result","exit_code","voting","needed",
/// "servers":[{"server","votes",…,"findings":[{"grade","check","text"}]}]}. Each server has the
/// same fields; a field is null where the server does not tell.
std::string diagnosis_json(const SetDiagnosis& set, int exit_code);

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
