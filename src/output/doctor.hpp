#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/diagnosis.hpp"

namespace redlock::output {

/// The report of `doctor`: a table of the servers, one line per problem or unknown fact, and a
/// summary as the last line. Pure. Text from servers is returned escaped for the terminal.
std::string diagnosis_text(const SetDiagnosis& set, std::size_t width);

/// The same as JSON on one line, without a newline:
/// {"command","result","exit_code","voting","needed",
/// "servers":[{"server","votes",…,"findings":[{"grade","check","text"}]}]}. Each server has the
/// same fields; a field is null if the server does not report it.
std::string diagnosis_json(const SetDiagnosis& set, int exit_code);

/// An option that may be set outside the command line.
struct ShownSetting {
  /// The value of the option and its origin.
  struct Value {
    std::string text;   ///< not escaped
    std::string where;  ///< the origin, safe for a terminal
  };
  std::string name;
  std::optional<Value> value;  ///< nullopt: not set
  std::string fallback;        ///< the default; empty: none
};

/// `doctor --settings`: a line `name = value (where)` per option, with the default if it is not
/// set.
std::string settings_text(const std::vector<ShownSetting>& settings);

/// The same as JSON on one line, without a newline:
/// {"command","settings":[{"name","value","where","default"},…]}, with null for a missing value.
std::string settings_json(const std::vector<ShownSetting>& settings);

}  // namespace redlock::output
