#pragma once

#include <string_view>

#include "output/exit_code.hpp"

namespace redlock::output {

/// How a command ended. One table (command_result.cpp) maps each result to its word in JSON and its
/// exit code.
enum class CommandResult {
  acquired,
  extended,
  released,
  unreleased,  ///< the command ran to its end; that the lock is free is not confirmed
  fresh,       ///< the command need not run: one did recently (--once-per)
  inherited,   ///< nothing to do: the lease is of the run or acquire around this one
  broken,
  free,
  interrupted,
  not_started,
  usage,
  unavailable,
  internal,
  os_error,
  busy,
  superseded,  ///< a newer waiter took its place
  denied,
  config,
  lost,
  unconfirmed,
  timed_out,  ///< the command was stopped at the end of --max-hold
};

/// Its name in JSON.
std::string_view word_of(CommandResult result);

/// Its exit code, unless something else decides: the command's own end, -E, a signal.
ExitCode code_of(CommandResult result);

/// What ended a command before it began its work.
CommandResult result_of(ExitCode code);

}  // namespace redlock::output
