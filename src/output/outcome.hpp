#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/decision.hpp"
#include "core/types.hpp"
#include "core/vote.hpp"
#include "engine/attempt.hpp"
#include "output/exit_code.hpp"

namespace redlock::output {

/// How a command ended. One table (outcome.cpp) maps each result to its word in JSON and its exit
/// code.
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
  timed_out,    ///< the command was stopped at the end of --max-hold
  parent_gone,  ///< the process that started us has ended (--with-parent)
  stopped,      ///< at the request of another process: what ran under the lock, or for `stop` the
                ///< holder
};

/// Its name in JSON.
std::string_view word_of(CommandResult result);

/// Its exit code, unless something else decides: the command's own end, -E, a signal.
ExitCode code_of(CommandResult result);

/// What ended a command before it began its work.
CommandResult result_of(ExitCode code);

/// The result of a command, for people and for JSON.
struct Outcome {
  std::string command;
  std::vector<Resource> resources;
  CommandResult result = CommandResult::internal;
  int exit_code = 0;
  std::string message;  ///< for people; empty: none
  std::optional<Holder> holder;
  std::vector<ServerFault> faults;
  std::optional<Owner> superseded_by;
};

/// An outcome of this command for these keys, or one of them, with the exit code of the result.
Outcome outcome_of(std::string_view command, std::vector<Resource> resources, CommandResult result,
                   std::string message);

/// How a failed acquire ends the command.
CommandResult result_of(AcquireDecision why);

/// How a command ends when too few servers answered: denied, config or unavailable, depending on
/// what prevents a quorum.
CommandResult result_for_faults(const std::vector<ServerFault>& faults, std::size_t servers);

}  // namespace redlock::output
