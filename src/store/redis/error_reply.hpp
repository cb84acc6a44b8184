#pragma once

#include <string>
#include <string_view>

#include "core/vote.hpp"

namespace redlock::redis {

/// The meaning of a server's error reply: the kind of fault, and one clause with advice where we
/// have some.
Fault fault_of_error(std::string_view error_text);

/// What a server says, for people: without secrets, and safe for a terminal.
std::string quote_of(std::string_view error_text);

/// Whether two error replies ask the same of us; never true of a redirect, whose words are its
/// meaning.
bool means_the_same(std::string_view one, std::string_view other);

/// AUTH to a server that has no password.
bool is_needless_password(std::string_view error_text);

/// Whether the server does nothing for us before a login.
bool wants_login(std::string_view error_text);

/// Whether the server refuses the connection itself, and closes it behind this.
bool refuses_connection(std::string_view error_text);

/// Whether the server does not know the script of an EVALSHA.
bool is_noscript(std::string_view error_text);

/// Whether the server refuses because it is a replica, even if it noticed that inside a script.
bool is_read_only(std::string_view error_text);

/// Whether the server only answered that the key, or a part of what belongs to it, is elsewhere in
/// its cluster.
bool is_redirect(std::string_view error_text);

}  // namespace redlock::redis
