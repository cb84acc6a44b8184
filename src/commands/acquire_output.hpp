#pragma once

#include <optional>
#include <string>
#include <vector>

#include "commands/acquisition.hpp"
#include "commands/options.hpp"
#include "commands/session.hpp"
#include "core/lease.hpp"
#include "output/event_writer.hpp"
#include "output/outcome.hpp"
#include "output/printer.hpp"
#include "support/result.hpp"

namespace redlock::commands {

/// What `acquire` demands of its leases.
Demands demands_of(const AcquireOptions& options);

/// All that listens to the events of an `acquire`.
class ScriptListeners {
 public:
  /// All must outlive it, and it must outlive the session's run(). `job_group`: see Printer. Throws
  /// std::system_error.
  ScriptListeners(Session& session, const AcquireOptions& options, pid_t job_group);

 private:
  output::Printer printer_;
  std::optional<output::EventWriter> event_writer_;  ///< of --events-fd
};

/// What `acquire` gives to the script: the text for stdout, and the token file.
class AcquireOutput {
 public:
  /// `options` must outlive it.
  AcquireOutput(const AcquireOptions& options, bool json) : options_(options), json_(json) {}

  /// Writes the token file, if there is to be one. Returns the text for stdout: the tokens, exports
  /// or JSON. The error is one clause for the user.
  Result<std::string, std::string> write(const std::vector<Lease>& leases);

  /// The script does not get the leases: removes the file again.
  void take_back();

  /// The text for stdout of an acquire that failed. It may be long, so there is a short one, too,
  /// without the keys.
  struct FailureText {
    std::string text{};
    std::string short_text{};
  };
  [[nodiscard]] FailureText failure_text(const output::Outcome& outcome) const;

 private:
  const AcquireOptions& options_;
  bool json_;
  bool wrote_file_ = false;
};

}  // namespace redlock::commands
