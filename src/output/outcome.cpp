#include "output/outcome.hpp"

#include <algorithm>

#include "core/decision.hpp"

namespace redlock::output {

using Why = AttemptFailure::Why;

FailureMeaning meaning_of(Why why) {
  switch (why) {
    case Why::busy:
    case Why::maybe_busy:
    case Why::split:
      return {ExitCode::busy, "busy"};
    case Why::denied:
      return {ExitCode::denied, "denied"};
    case Why::misconfigured:
    case Why::duplicate:
      return {ExitCode::config, "config"};
    case Why::interrupted:
      return {ExitCode::internal, "interrupted"};
    case Why::outgrown:
    case Why::enclosed:
      return {ExitCode::usage, "usage"};
    case Why::unavailable:
    case Why::guarded:
    case Why::too_slow:
      break;
  }
  return {ExitCode::unavailable, "unavailable"};
}

ExitCode code_for_faults(const std::vector<ServerFault>& faults, std::size_t servers) {
  const auto blocks = [&](FaultKind kind) {
    const auto count = std::count_if(faults.begin(), faults.end(), [&](const ServerFault& fault) { return fault.fault.kind == kind; });
    return servers - static_cast<std::size_t>(count) < quorum_of(servers);
  };
  if (blocks(FaultKind::denied)) return ExitCode::denied;
  if (blocks(FaultKind::misconfigured)) return ExitCode::config;
  return ExitCode::unavailable;
}

std::string_view result_word(ExitCode code) {
  switch (code) {
    case ExitCode::done:
      return "done";
    case ExitCode::usage:
      return "usage";
    case ExitCode::unavailable:
      return "unavailable";
    case ExitCode::internal:
      return "internal";
    case ExitCode::os_error:
      return "os_error";
    case ExitCode::busy:
      return "busy";
    case ExitCode::denied:
      return "denied";
    case ExitCode::config:
      return "config";
    case ExitCode::lost:
      return "lost";
    case ExitCode::unconfirmed:
      return "unconfirmed";
    case ExitCode::not_executable:
    case ExitCode::not_found:
      return "not_started";
  }
  return "internal";
}

Outcome outcome_of(std::string_view command, std::vector<Resource> resources, ExitCode code, std::string message) {
  Outcome outcome;
  outcome.command = command;
  outcome.resources = std::move(resources);
  outcome.result = result_word(code);
  outcome.exit_code = to_int(code);
  outcome.message = std::move(message);
  return outcome;
}

}  // namespace redlock::output
