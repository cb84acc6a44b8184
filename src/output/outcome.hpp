#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/decision.hpp"
#include "core/exit_code.hpp"
#include "core/types.hpp"
#include "core/vote.hpp"
#include "engine/attempt.hpp"
#include "engine/dismissal.hpp"
#include "engine/held_lease.hpp"

namespace redlock::output {

/// How a command ended. One table (outcome.cpp) maps each result to its word in JSON and its exit
/// code.
enum class CommandResult {
  acquired,
  extended,
  released,
  unreleased,  ///< the command ran to its end, but no quorum confirmed the release
  fresh,       ///< the command did not run, because a recent run succeeded (--once-per)
  inherited,   ///< nothing to do: the lease belongs to an enclosing run or acquire
  broken,
  free,
  interrupted,
  not_started,
  usage,
  unavailable,
  internal,
  os_error,
  busy,
  superseded,  ///< by a newer waiter
  dismissed,   ///< `stop --waiting` sent it away; of `stop`: it sent those who wait away
  denied,
  config,
  lost,
  unconfirmed,
  timed_out,    ///< the command was stopped at the end of --max-hold
  parent_gone,  ///< the process that started us has ended (--with-parent)
  stopped,      ///< the command was stopped at the request of another process; of `stop`: the
                ///< holder has stopped
};

/// Its name in JSON.
std::string_view word_of(CommandResult result);

/// The exit code of the result, unless the status of the command, -E or a signal replaces it.
ExitCode code_of(CommandResult result);

/// The result of a command that failed with this code before it began its work.
CommandResult result_of(ExitCode code);

/// The result of a command, for people and for JSON.
struct Outcome {
  std::string command;
  std::vector<Resource> resources;
  CommandResult result = CommandResult::internal;
  int exit_code = 0;
  std::string message;  ///< for people; may be empty
  std::optional<Holder> holder;
  std::vector<ServerFault> faults;
  std::optional<Owner> superseded_by;
  std::optional<StopRequest> dismissed_by;
  std::optional<SentAway> sent_away;  ///< of `stop --waiting` and `--all`
};

/// The outcome of `command` for these keys, with the exit code of the result.
Outcome outcome_of(std::string_view command, std::vector<Resource> resources, CommandResult result,
                   std::string message);

/// How a failed acquire ends the command.
CommandResult result_of(AcquireDecision why);

/// How an extension that was not confirmed ends the command.
CommandResult result_of(const ExtendResult& result, std::size_t servers);

/// How a command ends when too few servers answered: denied, config or unavailable, depending on
/// what prevents a quorum.
CommandResult result_for_faults(const std::vector<ServerFault>& faults, std::size_t servers);

}  // namespace redlock::output
