#include "output/outcome.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/decision.hpp"

namespace redlock::output {
namespace {

struct Meaning {
  CommandResult result;
  std::string_view word;
  ExitCode code;
};

constexpr std::array meanings{
    Meaning{CommandResult::acquired, "acquired", ExitCode::done},
    Meaning{CommandResult::extended, "extended", ExitCode::done},
    Meaning{CommandResult::released, "released", ExitCode::done},
    Meaning{CommandResult::unreleased, "unreleased", ExitCode::done},
    Meaning{CommandResult::fresh, "fresh", ExitCode::done},
    Meaning{CommandResult::inherited, "inherited", ExitCode::done},
    Meaning{CommandResult::broken, "broken", ExitCode::done},
    Meaning{CommandResult::free, "free", ExitCode::done},
    Meaning{CommandResult::stopped, "stopped", ExitCode::done},
    Meaning{CommandResult::interrupted, "interrupted", ExitCode::internal},
    Meaning{CommandResult::usage, "usage", ExitCode::usage},
    Meaning{CommandResult::unavailable, "unavailable", ExitCode::unavailable},
    Meaning{CommandResult::internal, "internal", ExitCode::internal},
    Meaning{CommandResult::os_error, "os_error", ExitCode::os_error},
    Meaning{CommandResult::busy, "busy", ExitCode::busy},
    Meaning{CommandResult::superseded, "superseded", ExitCode::busy},
    Meaning{CommandResult::dismissed, "dismissed", ExitCode::busy},
    Meaning{CommandResult::denied, "denied", ExitCode::denied},
    Meaning{CommandResult::config, "config", ExitCode::config},
    Meaning{CommandResult::lost, "lost", ExitCode::lost},
    Meaning{CommandResult::unconfirmed, "unconfirmed", ExitCode::unconfirmed},
    Meaning{CommandResult::timed_out, "timed_out", ExitCode::timed_out},
    Meaning{CommandResult::parent_gone, "parent_gone", ExitCode::done},
    Meaning{CommandResult::not_started, "not_started", ExitCode::not_executable},
    Meaning{CommandResult::not_started, "not_started", ExitCode::not_found},
};

const Meaning& meaning_of(CommandResult result) {
  return *std::find_if(meanings.begin(), meanings.end(),
                       [=](const Meaning& meaning) { return meaning.result == result; });
}

}  // namespace

std::string_view word_of(CommandResult result) {
  return meaning_of(result).word;
}

ExitCode code_of(CommandResult result) {
  return meaning_of(result).code;
}

CommandResult result_of(ExitCode code) {
  const auto* found = std::find_if(meanings.begin(), meanings.end(), [=](const Meaning& meaning) {
    return meaning.code == code && code != ExitCode::done &&
           meaning.result != CommandResult::interrupted;
  });
  return found == meanings.end() ? CommandResult::internal : found->result;
}

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

CommandResult result_of(AcquireDecision why) {
  switch (why) {
    case AcquireDecision::busy:
    case AcquireDecision::maybe_busy:
    case AcquireDecision::split:
    case AcquireDecision::queue_full:
      return CommandResult::busy;
    case AcquireDecision::denied:
      return CommandResult::denied;
    case AcquireDecision::misconfigured:
    case AcquireDecision::duplicate:
      return CommandResult::config;
    case AcquireDecision::superseded:
      return CommandResult::superseded;
    case AcquireDecision::dismissed:
      return CommandResult::dismissed;
    case AcquireDecision::stopped:
      return CommandResult::stopped;
    case AcquireDecision::interrupted:
      return CommandResult::interrupted;
    case AcquireDecision::held_around_us:
    case AcquireDecision::parent_too_weak:
      return CommandResult::usage;
    case AcquireDecision::unavailable:
    case AcquireDecision::guarded:
    case AcquireDecision::too_slow:
    case AcquireDecision::undecided:
    case AcquireDecision::granted:
      break;
  }
  return CommandResult::unavailable;
}

CommandResult result_of(const ExtendResult& result, std::size_t servers) {
  return result.decision == ExtendDecision::lost ? CommandResult::lost
                                                 : result_for_faults(result.faults, servers);
}

CommandResult result_for_faults(const std::vector<ServerFault>& faults, std::size_t servers) {
  const auto number_of = [&](FaultKind kind) {
    return static_cast<std::size_t>(std::ranges::count(
        faults, kind, [](const ServerFault& server) { return server.fault.kind; }));
  };
  const auto lasting =
      lasting_obstacle(number_of(FaultKind::denied), number_of(FaultKind::misconfigured), servers);
  if (!lasting) return CommandResult::unavailable;
  return *lasting == FaultKind::denied ? CommandResult::denied : CommandResult::config;
}

}  // namespace redlock::output
