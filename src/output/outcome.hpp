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
#include "output/result.hpp"

namespace redlock::output {

/// What became of a command, for people and for JSON.
struct Outcome {
  std::string command;
  std::vector<Resource> resources;
  Result result = Result::internal;
  int exit_code = 0;
  std::string message;  ///< for people; empty: none
  std::optional<Holder> holder;
  std::vector<ServerFault> faults;
};

/// An outcome of this command about these keys, or one of them, with the exit code that goes with the result.
Outcome outcome_of(std::string_view command, std::vector<Resource> resources, Result result, std::string message);

/// How a failed acquire ends the command.
Result result_of(AttemptFailure::Why why);

/// How it ends when too few servers gave an answer: denied, config or unavailable, by what keeps a quorum from being reached.
Result result_for_faults(const std::vector<ServerFault>& faults, std::size_t servers);

}  // namespace redlock::output
