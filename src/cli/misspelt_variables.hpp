#pragma once

#include "cli/settings.hpp"

namespace redlock::cli {

/// Refuses (config) a variable that was probably meant as a setting, such as REDLOCK_SERVERS: what
/// it says would be left out in silence. A variable REDLOCK_... may also belong to another program,
/// so it must be nearly the name of a setting that this command has and that neither its own
/// variable nor the command line sets.
void refuse_misspelt_variables(const Settings& settings);

}  // namespace redlock::cli
