#pragma once

#include <string>
#include <string_view>

#include "commands/options.hpp"
#include "commands/session.hpp"
#include "core/stop_plan.hpp"
#include "engine/held_set.hpp"
#include "guard/stop_meter.hpp"
#include "output/event.hpp"
#include "output/run_state.hpp"

namespace redlock::commands {

/// All that is known of one `run`, `acquire` or `hold`, and its events. The holder and what it
/// guards write here what they learn.
class HoldReport {
 public:
  /// All must outlive it. `command`: `run`, `acquire` or `hold`.
  HoldReport(Session& session, const LockOptions& options, std::string_view command);

  output::RunState state;

  void add(const output::event::Any& event) const { session_.events().report(event); }

  // --- The leases ---

  void renewed(bool after_trouble);
  void not_renewed(const SetInTrouble& event);

  /// A lease has ended. Call report_loss() once the stop signal was sent, which no message may
  /// delay.
  void lost(const SetEnded& event);

  /// Reports the loss, if there is one that was not reported.
  void report_loss();

  /// The set of servers that do not vote may have changed: a quorum suffices, but while servers are
  /// missing it may soon be lost. Reports each change once.
  void report_missing_votes();

  // --- The end of what they are for ---

  /// It is stopped because the lease is lost, or cannot be renewed in time: notes the loss, unless
  /// lost() did. `delay`: the longest recent delay of this process.
  void note_loss(const guard::Delay& delay);

  /// The stop signal was sent, unless the plan lets it run on without the lease.
  void stopping(StopReason why, const guard::Delay& delay, const StopPlan& plan);

  [[nodiscard]] output::event::Stopping stopping_event(StopReason why, const StopPlan& plan) const;

  // --- How it ends ---

  [[nodiscard]] output::Outcome outcome_of(output::CommandResult result, std::string message) const;
  void conclude(output::Outcome outcome);
  void conclude(output::CommandResult result, std::string message);
  /// Concludes that this process dies of the signal.
  void conclude_signalled(int signal, output::CommandResult result, std::string message = {});
  void report_conclusion() const { add(output::event::Concluded{state.outcome}); }

  /// The leases of an acquire were released. `granted`: when they were granted.
  void released(const SetReleaseResult& result, Instant granted);

  /// They were, because the script did not get them: `why` is a clause for the user.
  void undone(const std::string& why);

 private:
  Session& session_;
  const LockOptions& options_;
  std::string_view command_;
  bool loss_reported_ = false;
  std::string missing_votes_;  ///< as last reported
};

}  // namespace redlock::commands
