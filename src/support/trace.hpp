#pragma once

#include <string>
#include <string_view>

#include "support/boot_clock.hpp"
#include "support/result.hpp"

namespace redlock {

/// The trace for developers, which REDLOCK_TRACE=FD asks for: one line for each message between the
/// guards, each verdict about a signal, each step of a stop schedule, and each vote. It costs
/// nothing while it is off. No line contains a token, or an argument of the command. For the main
/// thread only.

/// Reads REDLOCK_TRACE and removes it from the environment. The command inherits neither the
/// variable nor the descriptor, unless that is a standard stream; our own processes keep a
/// duplicate of it. Call it before processes are forked. Fails if it is no descriptor open for
/// writing.
Result<void, std::string> begin_trace();

/// Whether the trace is on. Ask before a line is made.
[[nodiscard]] bool is_traced() noexcept;

/// The name of this process in the lines that follow.
void set_trace_name(std::string_view name) noexcept;

/// Writes `SECONDS NAME[PID] TOPIC: TEXT`, with the seconds since begin_trace(). A line that cannot
/// be written at once is dropped.
void trace(std::string_view topic, std::string_view text);

/// An instant as the lines show it: seconds since begin_trace(); `never` for Instant::max().
std::string trace_time(Instant when);

}  // namespace redlock
