#pragma once

#include <string_view>

#include "core/vote.hpp"

namespace redlock::redis {

/// What an error reply of a server means: which kind of fault, and one clause that tells what to do where we know it.
Fault fault_of_error(std::string_view error_text);

/// Whether the server does not know the script of an EVALSHA.
bool is_noscript(std::string_view error_text);

}  // namespace redlock::redis
