#pragma once

#include <optional>
#include <string>
#include <vector>

namespace redlock::cli {

/// The URLs of a server value: it may be a comma list, and so may the hosts of a URL.
std::vector<std::string> split_servers(const std::string& value);

/// A server value as it may be shown: rebuilt from what was read of it, with `...@` for a login.
/// Nothing when a part of it is no valid server: then nobody knows what in it is a password.
std::optional<std::string> shown_servers(const std::string& value);

/// A word of the user's as it may be shown. What may hold a login is shown as a server value, or
/// as `...`; an option keeps its name.
std::string shown_word(const std::string& word);

/// A message that may repeat some of these words, with each of them as it may be shown.
std::string shown_message(std::string text, const std::vector<std::string>& words);

}  // namespace redlock::cli
