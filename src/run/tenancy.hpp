#pragma once

#include <asio/awaitable.hpp>
#include <memory>
#include <optional>

#include "child/descriptors.hpp"
#include "child/isolation.hpp"
#include "child/shared_page.hpp"
#include "child/signals.hpp"
#include "child/supervisor.hpp"
#include "engine/held_set.hpp"
#include "run/finish.hpp"
#include "run/job.hpp"
#include "run/options.hpp"
#include "run/parent_links.hpp"
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

/// The life of one `run`, in the holder process: wait for the locks, run the command under them,
/// release. Single-threaded.
class Tenancy {
 public:
  /// All must outlive it.
  Tenancy(const TenancyParts& parts, const RunOptions& options);

  /// From the wait to the release; returns how `run` is to end. Call it once.
  asio::awaitable<Finish> live();

 private:
  /// The command under its leases. The coroutine that renews in the background shares it, and may
  /// still wait for an answer after the end.
  struct Stay;

  asio::awaitable<Result<std::shared_ptr<HeldSet>, SetFailure>> wait();
  asio::awaitable<std::optional<Finish>> skip_if_fresh(HeldSet& leases);
  asio::awaitable<std::optional<Finish>> run_under(std::shared_ptr<HeldSet> leases);
  Result<void, child::ExecFailure> prepare(Stay& stay);
  Result<bool, child::ExecFailure> start(Stay& stay);
  void keep(const std::shared_ptr<Stay>& stay);
  asio::awaitable<bool> outlast_nested_runs(Stay& stay);
  asio::awaitable<void> give_up_turn(Stay& stay);
  asio::awaitable<Finish> release(Stay& stay, Finish finish, Duration expire_in = Duration::zero(),
                                  std::optional<Instant> ended = std::nullopt);
  [[nodiscard]] Duration left_of_min_hold(const child::Ending& ending) const;
  child::SupervisorEvents supervisor_events();
  [[nodiscard]] Instant now() const { return parts_.session.clock().now(); }

  TenancyParts parts_;
  const RunOptions& options_;
  std::shared_ptr<ParentLinks> parents_;  ///< to parent runs
  std::shared_ptr<Stay> stay_;            ///< the current one, or the last
  std::unique_ptr<Event> changed_;        ///< the event that outlast_nested_runs() waits for
  Instant began_;
  Instant granted_at_;  ///< when the last lock was granted: held times count from there
};

}  // namespace redlock::run
