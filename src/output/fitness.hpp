#pragma once

#include <string>
#include <vector>

#include "core/fitness.hpp"

namespace redlock::output {

/// What `doctor` found, as a table with a line for each thing that is amiss or not known, and a last line that sums up. Pure; everything
/// from elsewhere comes out escaped for the terminal.
std::string fitness_text(const std::vector<std::string>& names, const std::vector<Checkup>& checkups, const Fitness& fitness);

/// The same as JSON on one line, without a newline:
/// {"command","result","exit_code","voting","needed","servers":[{"server","votes",…,"findings":[{"grade","check","text"}]}]}.
std::string fitness_json(const std::vector<std::string>& names, const std::vector<Checkup>& checkups, const Fitness& fitness,
                         int exit_code);

}  // namespace redlock::output
