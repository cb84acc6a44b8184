#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace redlock::child {

/// Gives this process another name in `comm`, which others read with name_of(); at most 15 bytes of it.
void set_name(std::string_view name) noexcept;

/// The `comm` of a process; empty when there is none.
std::string name_of(pid_t pid);

/// Gives this process another name: in `comm` and over the words of its command line, so that `killall redlock-cli` and `pgrep -f` aimed at
/// the program, or at a word of its arguments, miss it. `argv` is main's.
void set_title(std::string_view title, int argc, char** argv) noexcept;

}  // namespace redlock::child
