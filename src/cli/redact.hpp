#pragma once

#include <string>

namespace redlock::cli {

/// What the user wrote, as it may be repeated in a message: every URL in it loses its login.
std::string without_logins(std::string text);

/// The same of a value that should be URLs and nothing else: what is no valid one loses whatever stands before its last `@`, too.
std::string without_logins_of_servers(const std::string& value);

}  // namespace redlock::cli
