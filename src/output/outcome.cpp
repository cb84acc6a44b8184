#include "output/outcome.hpp"

#include <algorithm>
#include <utility>

#include "core/decision.hpp"

namespace redlock::output {

using Why = AttemptFailure::Why;

Outcome outcome_of(std::string_view command, std::vector<Resource> resources, CommandResult result,
                   std::string message) {
  Outcome outcome;
  outcome.command = command;
  outcome.resources = std::move(resources);
  outcome.result = result;
  outcome.exit_code = to_int(code_of(result));
  outcome.message = std::move(message);
  return outcome;
}

CommandResult result_of(Why why) {
  switch (why) {
    case Why::busy:
    case Why::maybe_busy:
    case Why::split:
      return CommandResult::busy;
    case Why::denied:
      return CommandResult::denied;
    case Why::misconfigured:
    case Why::duplicate:
      return CommandResult::config;
    case Why::superseded:
      return CommandResult::superseded;
    case Why::interrupted:
      return CommandResult::interrupted;
    case Why::held_around_us:
    case Why::parent_too_weak:
    case Why::parent_too_short:
      return CommandResult::usage;
    case Why::unavailable:
    case Why::guarded:
    case Why::too_slow:
      break;
  }
  return CommandResult::unavailable;
}

CommandResult result_for_faults(const std::vector<ServerFault>& faults, std::size_t servers) {
  const auto blocks = [&](FaultKind kind) {
    const auto count = std::count_if(faults.begin(), faults.end(), [&](const ServerFault& fault) {
      return fault.fault.kind == kind;
    });
    return servers - static_cast<std::size_t>(count) < quorum_of(servers);
  };
  if (blocks(FaultKind::denied)) return CommandResult::denied;
  if (blocks(FaultKind::misconfigured)) return CommandResult::config;
  return CommandResult::unavailable;
}

}  // namespace redlock::output
