#include "commands/hold_report.hpp"

#include <utility>

#include "commands/conclusion.hpp"
#include "commands/exit_as.hpp"
#include "output/failure_text.hpp"

namespace redlock::commands {

namespace event = output::event;
using output::CommandResult;

HoldReport::HoldReport(Session& session, const LockOptions& options, std::string_view command)
    : session_(session), options_(options), command_(command) {
  state.outcome = outcome_of(CommandResult::internal, {});
}

void HoldReport::renewed(bool after_trouble) {
  state.trouble.clear();
  report_missing_votes();
  add(event::Renewed{after_trouble});
}

void HoldReport::not_renewed(const SetInTrouble& event) {
  state.trouble = output::faults_text(event.trouble.faults);
  if (event.trouble.first) add(event::RenewalFailed{event.resource, event.trouble.faults});
}

void HoldReport::lost(const SetEnded& event) {
  state.loss = output::Loss{event.resource, output::ended_text(event.end)};
  loss_reported_ = false;  // report it again: this reason is better than the failed renewals
}

void HoldReport::report_loss() {
  if (state.loss && !std::exchange(loss_reported_, true))
    add(event::Lost{state.loss->resource, state.loss->reason});
}

void HoldReport::report_missing_votes() {
  const ServerSet& servers = session_.server_set();
  std::vector<ServerFault> faults = servers.faults();
  std::string text = output::missing_votes_text(faults, servers.size());
  if (std::exchange(missing_votes_, text) != text)
    add(event::VotesChanged{std::move(faults), servers.size()});
}

void HoldReport::note_loss(const guard::Delay& delay) {
  if (!state.loss) state.loss = output::Loss{std::nullopt, reason_for_stop(state.trouble, delay)};
}

void HoldReport::stopping(StopReason why, const guard::Delay& delay, const StopPlan& plan) {
  if (why == StopReason::lease) {
    note_loss(delay);
    report_loss();
    if (plan.on_lost == OnLost::warn) return;
  }
  add(stopping_event(why, plan));
}

event::Stopping HoldReport::stopping_event(StopReason why, const StopPlan& plan) const {
  const bool is_requested = why == StopReason::request || why == StopReason::replaced;
  return {why, plan.max_hold, is_requested ? state.stop_request : std::nullopt};
}

output::Outcome HoldReport::outcome_of(CommandResult result, std::string message) const {
  return output::outcome_of(command_, options_.resources, result, std::move(message));
}

void HoldReport::conclude(output::Outcome outcome) {
  state.outcome = std::move(outcome);
  report_conclusion();
}

void HoldReport::conclude(CommandResult result, std::string message) {
  conclude(outcome_of(result, std::move(message)));
}

void HoldReport::conclude_signalled(int signal, CommandResult result, std::string message) {
  state.signal = signal;
  output::Outcome outcome = outcome_of(result, std::move(message));
  outcome.exit_code = exit_code_of({0, signal});
  conclude(std::move(outcome));
}

void HoldReport::released(const SetReleaseResult& result, Instant granted) {
  const auto& not_ours = result.result.not_ours;
  const bool by_hand = not_ours && not_ours->why == NotOurs::Why::released;
  const bool is_ours = has_own(state.leases);
  state.released = is_ours && (by_hand || result.result.decision == ReleaseDecision::released);
  state.held = session_.clock().now() - granted;
  add(event::Released{.confirmed = state.released,
                      .inherited = !is_ours,
                      .left_to_users = result.left_to_users,
                      .held = state.held,
                      .expire_in = Duration::zero()});
}

void HoldReport::undone(const std::string& why) {
  conclude(CommandResult::os_error, why + "; the lock was released");
}

}  // namespace redlock::commands
