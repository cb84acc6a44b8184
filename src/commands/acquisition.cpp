#include "commands/acquisition.hpp"

#include <unistd.h>

#include "commands/lease_file.hpp"
#include "commands/nesting.hpp"
#include "commands/wait.hpp"
#include "core/lease_handle.hpp"
#include "core/validity.hpp"
#include "guard/signals.hpp"
#include "output/describe.hpp"
#include "output/outcome.hpp"

namespace redlock::commands {

using output::CommandResult;

void Acquisition::on_signal(int signal) {
  if (!guard::ends_a_wait(signal)) return;
  cancelled_ = Cancellation{signal, {}};
  session_.interrupt().raise();
}

void Acquisition::cancel(std::string why) {
  if (!cancelled_) cancelled_ = Cancellation{0, std::move(why)};
  session_.interrupt().raise();
}

asio::awaitable<AcquireOutput> Acquisition::acquire() {
  const bool is_watched = options_.background && options_.background->process;
  // --detach promises to keep the lock. An inherited lease would not: it ends with its parent run,
  // and `release` has no effect on it.
  const bool needs_own = options_.background && !options_.background->process;
  Duration needed = margin(options_.ttl);
  if (is_watched) needed += options_.background->stop.grace;
  ParentLinks* const links = is_watched ? parents_.get() : nullptr;
  auto orders = co_await make_orders(options_, needed, links);
  if (needs_own && co_await has_parent_lease(session_.server_set(), orders))
    co_return refuse_parent_lease();

  auto granted =
      co_await wait_for_locks(session_, std::move(orders), options_.wait, options_.insists_on_wait);
  if (!granted) {
    const WaitFailure& failed = granted.error();
    if (failed.failure.why == AcquireDecision::interrupted) co_return end_cancelled();
    co_return fail(outcome_of_wait("acquire", options_, failed, session_.server_set().size()));
  }

  HeldSet& leases = **granted;
  granted_at_ = session_.clock().now();
  if (needs_own && !are_our_own(leases.leases())) {
    (void)co_await leases.release(/*by_hand=*/false);
    co_return refuse_parent_lease();
  }
  if (!cancelled_ && leases.leases().size() > 1) {
    // Some leases may be much older than the last one: renew, so that each lasts a full ttl from
    // now on.
    const ExtendResult renewed = co_await leases.extend();
    if (renewed.decision != ExtendDecision::confirmed) {
      (void)co_await leases.release(/*by_hand=*/false);
      co_return fail_to_renew(renewed);
    }
  }
  if (cancelled_) {
    (void)co_await leases.release(/*by_hand=*/false);
    co_return end_cancelled();
  }

  report_acquired(session_, leases.leases(), granted_at_ - began_);
  const LeaseHandle handle = handle_of(leases.leases(), fingerprint(options_.servers));
  if (options_.token_file) {
    if (const auto written = write_lease_file(*options_.token_file, handle); !written) {
      co_await release(leases);
      co_return fail_after_release("cannot write the lease to " + written.error());
    }
  }
  co_return AcquireOutput{Finish{}, text_of(leases, handle), *granted};
}

asio::awaitable<AcquireOutput> Acquisition::undo(std::shared_ptr<HeldSet> leases, std::string why) {
  co_await release(*leases);
  if (options_.token_file) ::unlink(options_.token_file->c_str());
  co_return fail_after_release(why);
}

asio::awaitable<void> Acquisition::release(HeldSet& leases) {
  const ReleaseResult released = (co_await leases.release(/*by_hand=*/false)).result;
  const bool by_hand = released.not_ours && released.not_ours->why == NotOurs::Why::released;
  session_.events().report(output::event::Released{
      by_hand || released.decision == ReleaseDecision::released,
      /*inherited=*/false, session_.clock().now() - granted_at_, Duration::zero()});
}

void Acquisition::write_event(const output::event::Any& event) {
  if (event_writer_) event_writer_->on(event, wall_clock_now());
}

output::Outcome Acquisition::outcome_of(CommandResult result, std::string message) const {
  return output::outcome_of("acquire", options_.resources, result, std::move(message));
}

AcquireOutput Acquisition::end_cancelled() const {
  if (cancelled_->signal == 0) {
    return fail(outcome_of(CommandResult::os_error, cancelled_->why));
  }
  const Finish finish{0, cancelled_->signal};
  output::Outcome outcome = outcome_of(CommandResult::interrupted, {});
  outcome.exit_code = exit_code_of(finish);
  report_not_acquired(session_, outcome, session_.clock().now() - began_);
  return output_without_leases(outcome, finish);
}

AcquireOutput Acquisition::refuse_parent_lease() const {
  auto why = needs_own_lease_text("--detach", "use --detach outside of that, or with another key");
  return fail(outcome_of(CommandResult::usage, std::move(why)));
}

AcquireOutput Acquisition::fail_to_renew(const ExtendResult& renewed) const {
  const bool lost = renewed.decision == ExtendDecision::lost;
  const CommandResult how =
      lost ? CommandResult::lost
           : output::result_for_faults(renewed.faults, session_.server_set().size());
  const std::string why = lost ? output::not_ours_text(renewed.not_ours)
                               : "no quorum; " + output::faults_text(renewed.faults);
  output::Outcome outcome = outcome_of(how, "lost while the other keys were acquired: " + why);
  outcome.faults = renewed.faults;
  return fail(outcome);
}

/// Ends without leases; none was reported as acquired.
AcquireOutput Acquisition::fail(const output::Outcome& outcome) const {
  return conclude(outcome, /*acquired=*/false);
}

AcquireOutput Acquisition::fail_after_release(const std::string& why) const {
  return conclude(outcome_of(CommandResult::os_error, why + "; the lock was released"),
                  /*acquired=*/true);
}

/// Reports the end to the user.
AcquireOutput Acquisition::conclude(const output::Outcome& outcome, bool acquired) const {
  session_.events().report(output::event::Concluded{outcome});
  if (!acquired) report_not_acquired(session_, outcome, session_.clock().now() - began_);
  return output_without_leases(outcome, Finish{outcome.exit_code});
}

AcquireOutput Acquisition::output_without_leases(const output::Outcome& outcome,
                                                 Finish finish) const {
  AcquireOutput output;
  output.finish = finish;
  if (session_.json()) {
    output.text = output::outcome_json(outcome) + "\n";
    output::Outcome without_keys = outcome;
    without_keys.resources.clear();
    output.short_text = output::outcome_json(without_keys) + "\n";
  }
  if (options_.prints_export)
    output.text = output.short_text = failed_export_line(outcome.exit_code);
  return output;
}

std::string Acquisition::text_of(const HeldSet& leases, const LeaseHandle& handle) const {
  if (session_.json()) {
    const output::Outcome outcome = outcome_of(CommandResult::acquired, {});
    return output::lease_json(outcome, leases.leases(), handle.text()) + "\n";
  }
  if (options_.prints_export) return export_line(handle);
  return options_.token_file ? std::string() : variables_of(handle).token + "\n";
}

}  // namespace redlock::commands
