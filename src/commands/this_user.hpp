#pragma once

#include <string>

#include "core/vote.hpp"

namespace redlock::commands {

/// The name of this host in owner records.
std::string host_name();

/// An owner with only host and user.
Owner this_user();

}  // namespace redlock::commands
