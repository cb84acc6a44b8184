#pragma once

#include <asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "child/descriptors.hpp"
#include "child/isolation.hpp"
#include "child/shared_page.hpp"
#include "child/signals.hpp"
#include "child/supervisor.hpp"
#include "engine/held_set.hpp"
#include "run/job.hpp"
#include "run/nested_runs.hpp"
#include "run/options.hpp"
#include "run/run_reporter.hpp"
#include "run/session.hpp"

namespace redlock::run {

/// What a Tenancy needs from its process.
struct TenancyParts {
  Session& session;
  Job& job;
  RunReporter& reporter;
  child::SharedPage& page;
  const child::InheritedSignals& inherited;
  const child::InheritedDescriptors& inherited_descriptors;
  const child::Isolation& isolation;
};

/// The command under its leases: from the grant to the release. The steps are called in the order
/// in which they stand here. Single-threaded. The coroutine that renews in the background shares
/// it, and may still wait for an answer after the end.
class Stay : public std::enable_shared_from_this<Stay> {
 public:
  /// All must outlive it. `changed` is notified when a lease is lost, or a nested run ends.
  Stay(std::shared_ptr<HeldSet> leases, const TenancyParts& parts, const RunOptions& options,
       Event& changed);

  /// Forks the command, which waits.
  Result<void, child::ExecFailure> prepare();
  /// Both guards watch from here on. `granted_at`: --max-hold counts from there.
  void arm(Instant granted_at);
  /// They stop watching a command that is not to start.
  void disarm() { supervisor_.drop(); }
  /// False: the deadline is too near to run in.
  Result<bool, child::ExecFailure> start();
  /// Renews in the background, and reports to the supervisor what it must know.
  void keep();
  /// Until the command and what the options say of its descendants have ended.
  asio::awaitable<child::Ending> finish() { return supervisor_.finish(); }
  /// After the release: names what the command left running, once that is certain.
  asio::awaitable<void> report_left(std::vector<pid_t> left);
  /// Nested runs that the command left behind may live on our lease: they notice its end only at
  /// their next check, too late. False when some had to be stopped and could not be.
  asio::awaitable<bool> outlast_nested_runs();
  /// Nothing is renewed or reported any more. Call it before the release.
  void end();

  [[nodiscard]] HeldSet& leases() noexcept { return *leases_; }

 private:
  [[nodiscard]] child::SupervisorEvents supervisor_events();
  [[nodiscard]] Instant now() const { return parts_.session.clock().now(); }

  TenancyParts parts_;
  const RunOptions& options_;
  Event& changed_;
  std::shared_ptr<HeldSet> leases_;
  child::Supervisor supervisor_;
  std::shared_ptr<NestedRuns> nested_;  ///< below the command
  bool over_ = false;
};

}  // namespace redlock::run
