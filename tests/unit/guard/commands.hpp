#pragma once

#include <optional>
#include <string>

#include "../in_child.hpp"
#include "guard/command.hpp"

namespace redlock::guard::testing {

using namespace redlock::testing;

inline Command shell(const std::string& script) {
  return {"/bin/sh", {"sh", "-c", script}};
}

/// Prepares a command and starts it.
inline Result<pid_t, ExecFailure> spawn(const Command& command, const SpawnOptions& options,
                                        const InheritedSignals& inherited) {
  auto ready = ReadyCommand::prepare(command, options, inherited);
  if (!ready) return unexpected<ExecFailure>(ready.error());
  const pid_t pid = ready->pid();
  if (auto begun = ready->start(); !begun) return unexpected<ExecFailure>(begun.error());
  return pid;
}

/// Starts a command that is expected to start.
inline pid_t started(const Command& command,
                     const InheritedSignals& inherited = InheritedSignals::capture(),
                     bool own_group = false) {
  const auto child =
      spawn(command, {environment_with({}), own_group ? std::nullopt : std::optional(::getpgrp())},
            inherited);
  if (!child) ADD_FAILURE() << child.error().text;
  return child.value_or(-1);
}

/// Runs a command that is expected to succeed; returns what it wrote.
inline std::string output_of(const Command& command,
                             const InheritedSignals& inherited = InheritedSignals::capture()) {
  Pipe pipe;
  pid_t child = -1;
  {
    const StdoutTo redirected(pipe);
    child = started(command, inherited);
  }
  pipe.write_end.reset();
  std::string text = pipe.read();
  EXPECT_EQ(status_of(child), 0);
  return text;
}

}  // namespace redlock::guard::testing
