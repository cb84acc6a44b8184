#pragma once

#include <optional>
#include <vector>

#include "commands/exit_as.hpp"
#include "commands/session.hpp"
#include "output/outcome.hpp"

namespace redlock::commands {

/// The combined result for several keys: the first failure, else the result of a key for which
/// something was done.
class KeyReport {
 public:
  /// `session` must outlive it.
  explicit KeyReport(const Session& session) : session_(session) {}

  /// Reports the result of one key.
  void add(output::Outcome outcome);

  /// Prints the combined result with --json, and returns its exit code. At least one was added.
  ExitAs finish();

 private:
  const Session& session_;
  std::vector<Resource> resources_;
  std::optional<output::Outcome> whole_;
};

}  // namespace redlock::commands
