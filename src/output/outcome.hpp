#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/decision.hpp"
#include "core/types.hpp"
#include "core/vote.hpp"
#include "engine/attempt.hpp"
#include "output/command_result.hpp"
#include "output/exit_code.hpp"

namespace redlock::output {

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
CommandResult result_of(AttemptFailure::Why why);

/// How a command ends when too few servers answered: denied, config or unavailable, depending on
/// what prevents a quorum.
CommandResult result_for_faults(const std::vector<ServerFault>& faults, std::size_t servers);

}  // namespace redlock::output
