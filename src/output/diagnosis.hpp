#pragma once

#include <string>

#include "engine/diagnosis.hpp"

namespace redlock::output {

/// The findings of `doctor` as a table, one line for each thing that is wrong or unknown, with a
/// summary as the last line. Pure; everything from elsewhere is returned escaped for the terminal.
std::string diagnosis_text(const SetDiagnosis& set);

/// The same as JSON on one line, without a newline:
/// {"command","result","exit_code","voting","needed",
/// "servers":[{"server","votes",…,"findings":[{"grade","check","text"}]}]}. Each server has the
/// same fields; a field is null where the server does not tell.
std::string diagnosis_json(const SetDiagnosis& set, int exit_code);

}  // namespace redlock::output
