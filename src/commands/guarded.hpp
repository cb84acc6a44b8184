#pragma once

#include <asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string>

#include "commands/exit_as.hpp"
#include "core/stop_plan.hpp"
#include "engine/held_set.hpp"
#include "output/outcome.hpp"

namespace redlock::commands {

/// How the start of what a holder guards went.
enum class Started {
  yes,
  no,           ///< and why is reported
  paused,       ///< the job is paused: release the leases, and wait for them again
  interrupted,  ///< the session's interrupt was raised first
};

/// How the leases are released when what they were for has ended.
struct Parting {
  bool releases = true;  ///< false: something still runs, so they are left to expire
  ReleaseTerms terms{};
};

/// What the front process reports and exits with.
struct FrontReport {
  ExitAs exit_as{};
  std::string text{};
  std::string short_text{};  ///< where `text` is too long to be sent
};

/// What a holder guards: what works under its leases and must not outlive them.
class Guarded {
 public:
  Guarded() = default;
  virtual ~Guarded() = default;
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  /// Starts it under the leases, which were granted at `granted`. Calls HeldSet::keep(), or leaves
  /// that to the holder.
  virtual asio::awaitable<Started> start(std::shared_ptr<HeldSet> leases, Instant granted) = 0;

  /// The leases were extended; they are extended next at `next_round`.
  virtual void move_deadline(Instant deadline, Instant next_round) = 0;

  /// One of the leases has ended, and so all are of no use.
  virtual void lease_has_ended(const SetEnded& event) = 0;

  /// Stops it although the leases are valid.
  virtual void stop(StopReason why) = 0;

  /// After a start: waits until it has ended, and all that must end with it.
  virtual asio::awaitable<Parting> finish() = 0;

  /// The leases were released, as the last step or instead of a start.
  virtual asio::awaitable<void> released(SetReleaseResult result) = 0;

  /// The session's interrupt was raised before the start, by no signal and no stop request: reports
  /// how that ends the command.
  virtual void conclude_interrupted() = 0;

  /// The final report, once the servers are left; nullopt: the front process has it.
  virtual std::optional<FrontReport> last_report() = 0;
};

}  // namespace redlock::commands
