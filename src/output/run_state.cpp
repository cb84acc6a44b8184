#include "output/run_state.hpp"

#include <sys/wait.h>

namespace redlock::output {

std::optional<int> RunState::command_exit() const {
  if (!end || !end->status || !WIFEXITED(*end->status)) return std::nullopt;
  return WEXITSTATUS(*end->status);
}

std::optional<int> RunState::command_signal() const {
  if (!end || !end->status || !WIFSIGNALED(*end->status)) return std::nullopt;
  return WTERMSIG(*end->status);
}

bool RunState::is_lost() const {
  const bool stopped = end && end->stopped && (end->stopped == StopReason::lease || loss);
  return stopped || outcome.result == CommandResult::lost ||
         outcome.result == CommandResult::unconfirmed;
}

}  // namespace redlock::output
