#pragma once

#include <optional>
#include <string>
#include <vector>

namespace redlock::cli {

/// Splits the value of --server into URLs. Both the URLs and the hosts within a URL are separated
/// by commas.
std::vector<std::string> split_servers(const std::string& value);

/// A value of --server that is safe to show: rebuilt from the parsed parts, with `...@` in place of
/// a login. nullopt if a part of it is not a valid server, since any part could then be a password.
std::optional<std::string> shown_servers(const std::string& value);

/// A word of the command line that is safe to show. A word that may contain a login is shown by
/// shown_servers(), or as `...`; an option keeps its name.
std::string shown_word(const std::string& word);

/// A message with each of these words made safe to show, for messages that may quote them.
std::string shown_message(std::string text, const std::vector<std::string>& words);

}  // namespace redlock::cli
