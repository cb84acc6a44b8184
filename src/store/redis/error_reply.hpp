#pragma once

#include <string>
#include <string_view>

#include "core/vote.hpp"

namespace redlock::redis {

/// The meaning of a server's error reply: the kind of fault, and one clause with advice where we
/// have some.
Fault fault_of_error(std::string_view error_text);

/// The text of an error reply for the user: without secrets, and escaped for the terminal.
std::string quote_of(std::string_view error_text);

/// Whether two error replies have the same meaning; false for redirects, which differ by their
/// addresses.
bool means_the_same(std::string_view one, std::string_view other);

/// The fault of a server that reports that it is a replica.
Fault is_replica();

/// Whether a server without a password refused AUTH.
bool is_needless_password(std::string_view error_text);

/// Whether the server requires a login before any command.
bool wants_login(std::string_view error_text);

/// Whether the server refuses the connection itself, and closes it after this reply.
bool refuses_connection(std::string_view error_text);

/// Whether the server does not know the script of an EVALSHA.
bool is_noscript(std::string_view error_text);

/// Whether the server refuses because it is a replica, even if the error comes from inside a
/// script.
bool is_read_only(std::string_view error_text);

/// Whether the server only answered that the key, or some of its helper keys, are elsewhere in the
/// cluster.
bool is_redirect(std::string_view error_text);

}  // namespace redlock::redis
