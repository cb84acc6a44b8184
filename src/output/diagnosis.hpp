#pragma once

#include <string>

#include "engine/diagnosis.hpp"

namespace redlock::output {

/// What `doctor` found, as a table with a line for each thing that is amiss or not known, and a
/// last line that sums up. Pure; everything from elsewhere comes out escaped for the terminal.
std::string diagnosis_text(const SetDiagnosis& set);

/// The same as JSON on one line, without a newline:
/// {"command","result","exit_code","voting","needed",
/// "servers":[{"server","votes",…,"findings":[{"grade","check","text"}]}]}. Each server has the
/// facts of all, null where it does not tell.
std::string diagnosis_json(const SetDiagnosis& set, int exit_code);

}  // namespace redlock::output
