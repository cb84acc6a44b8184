#pragma once

#include <span>
#include <string_view>

namespace redlock::cli {

/// What a shell must read to complete redlock-cli: a file of completions/, which asks the program
/// for everything.
struct CompletionScript {
  std::string_view shell;
  std::string_view text;
};

std::span<const CompletionScript> completion_scripts();

}  // namespace redlock::cli
