#pragma once

#include <sys/types.h>

#include <string_view>

namespace redlock::child {

/// Gives this process another name in `comm`; at most 15 bytes of it.
void set_name(std::string_view name) noexcept;

/// Gives this process another name: in `comm` and over the words of its command line, so that
/// `killall redlock-cli` and `pgrep -f` aimed at the program, or at a word of its arguments, miss
/// it. `argv` is main's.
void set_title(std::string_view title, int argc, char** argv) noexcept;

}  // namespace redlock::child
