#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace redlock::cli {

/// What a shell must read to complete redlock-cli: a file of completions/, which asks the program
/// for everything.
struct CompletionScript {
  std::string_view shell;
  std::string_view text;
};

std::span<const CompletionScript> completion_scripts();

/// What may stand where a word of a command line is being typed, for the completion of shells.
struct Suggestions {
  enum class Kind {
    words,        ///< those in `words`
    beginnings,   ///< of words, in `words`: more is to be typed behind each
    keys,         ///< keys that are locked at the servers, then those in `words`
    files,        ///< the name of a file
    directories,  ///< the name of a directory
    pid,          ///< the process id of the shell
    command,      ///< a command with arguments, which begins at word number `command_word`
  };
  struct Word {
    std::string text;
    std::string help;  ///< what it means, one line; may be empty
  };

  Kind kind = Kind::words;
  std::vector<Word> words;       ///< all that there are, also those that begin differently
  std::string prefix{};          ///< of the word being typed, what stands before the suggestion
  std::size_t command_word = 0;  ///< counted from 0, without the program's name
};

/// Suggests what may replace the last of the words, which follow the program's name. At least one
/// word; the last one may be empty. Asks no server and reads no file.
Suggestions suggest(const std::vector<std::string>& words);

}  // namespace redlock::cli
