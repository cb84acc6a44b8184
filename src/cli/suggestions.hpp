#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::cli {

/// A file of completions/, which makes a shell complete redlock-cli by asking the program for
/// suggestions.
struct CompletionScript {
  std::string_view shell;
  std::string_view text;
};

std::span<const CompletionScript> completion_scripts();

/// The possible words at the cursor of a command line, for completion in shells.
struct Suggestions {
  enum class Kind {
    words,        ///< those in `words`
    beginnings,   ///< those in `words`, after each of which more must be typed
    keys,         ///< keys that are locked on the servers, and those in `words`
    files,        ///< file names
    directories,  ///< directory names
    pid,          ///< the process id of the shell
    command,      ///< a command with arguments, which begins at word number `command_word`
  };
  struct Word {
    std::string text;
    std::string help;  ///< its meaning, in one line; may be empty
  };

  Kind kind = Kind::words;
  std::vector<Word> words;       ///< not filtered by the letters typed so far
  std::string prefix{};          ///< the part of the typed word that precedes the suggestion
  std::size_t command_word = 0;  ///< counted from 0, without the program's name
};

/// Suggests replacements for the last word. `words` are those after the program's name: at least
/// one, and the last may be empty. Asks no server and reads no file.
Suggestions suggest(const std::vector<std::string>& words);

}  // namespace redlock::cli
