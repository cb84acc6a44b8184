#pragma once

#include <string_view>

#include "core/vote.hpp"

namespace redlock::redis {

/// What an error reply of a server means: which kind of fault, and one clause that tells what to do where we know it.
Fault fault_of_error(std::string_view error_text);

/// AUTH to a server that has no password.
bool is_needless_password(std::string_view error_text);

/// Whether the server does not know the script of an EVALSHA.
bool is_noscript(std::string_view error_text);

/// Whether the server does not do this because it is a replica, also when it noticed inside a script.
bool is_read_only(std::string_view error_text);

/// Whether the server did nothing but say that the key, or a part of what belongs to it, is elsewhere in its cluster.
bool is_redirect(std::string_view error_text);

}  // namespace redlock::redis
