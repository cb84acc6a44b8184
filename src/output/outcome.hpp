#pragma once

#include <vector>

#include "output/exit_code.hpp"
#include "engine/attempt.hpp"
#include "output/json.hpp"

namespace redlock::output {

/// How a failed acquire ends the command.
struct FailureMeaning {
  ExitCode code;
  std::string_view result;  ///< the word in JSON
};
FailureMeaning meaning_of(AttemptFailure::Why why);

/// What to exit with when too few servers gave an answer: denied, config or unavailable, by what keeps a quorum from being reached.
ExitCode code_for_faults(const std::vector<ServerFault>& faults, std::size_t servers);

/// Its word in JSON.
std::string_view result_word(ExitCode code);

/// An outcome of this command about these keys, or one of them.
Outcome outcome_of(std::string_view command, std::vector<Resource> resources, ExitCode code, std::string message);

}  // namespace redlock::output
