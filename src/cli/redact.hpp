#pragma once

#include <optional>
#include <string>
#include <vector>

namespace redlock::cli {

/// The URLs of a server value: it may be a comma list, and so may the hosts of a URL.
std::vector<std::string> split_servers(const std::string& value);

/// A server value that is safe to show: rebuilt from what was parsed, with `...@` for a login.
/// Nothing when a part of it is no valid server: then it is unknown which part is a password.
std::optional<std::string> shown_servers(const std::string& value);

/// A word of the user's that is safe to show. A word that may hold a login is shown as a server
/// value, or as `...`; an option keeps its name.
std::string shown_word(const std::string& word);

/// A message that may repeat some of these words, with each of them made safe to show.
std::string shown_message(std::string text, const std::vector<std::string>& words);

}  // namespace redlock::cli
