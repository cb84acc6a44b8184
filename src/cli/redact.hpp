#pragma once

#include <string>

namespace redlock::cli {

/// What the user wrote, as it may be repeated in a message: every URL in it loses its login.
std::string without_logins(std::string text);

}  // namespace redlock::cli
