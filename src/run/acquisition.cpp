#include "run/acquisition.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "child/signals.hpp"
#include "core/lease_handle.hpp"
#include "core/validity.hpp"
#include "output/describe.hpp"
#include "output/outcome.hpp"
#include "run/lease_file.hpp"
#include "run/nesting.hpp"
#include "run/wait.hpp"

namespace redlock::run {

void Acquisition::on_signal(int signal) {
  if (done_ || !child::ends_a_wait(signal)) return;
  ended_by_ = signal;
  session_.interrupt().raise();
}

void Acquisition::call_off(std::string why) {
  if (done_) return;
  called_off_ = std::move(why);
  session_.interrupt().raise();
}

asio::awaitable<Handout> Acquisition::acquire() {
  Duration needed = margin(options_.ttl);
  if (options_.while_pid) needed += options_.while_pid->stop.grace;
  auto orders =
      co_await make_orders(options_, needed, options_.while_pid ? parents_.get() : nullptr);
  // --detach promises to keep the lock, which a lease of a process around this one would not do: it
  // ends with that process, and `release` does not touch it.
  const bool needs_own = options_.detached.has_value();
  if (needs_own && co_await has_parent_lease(session_.server_set(), orders))
    co_return refuse_parent_lease();
  auto leases =
      co_await wait_for_locks(session_, std::move(orders), options_.wait, options_.insists_on_wait);
  if (!leases) co_return fail(leases.error());
  granted_at_ = session_.clock().now();
  if (needs_own && !are_our_own((*leases)->leases())) {
    co_await take_back(**leases);
    co_return refuse_parent_lease();
  }
  if (!session_.interrupt().raised() && (*leases)->leases().size() > 1) {
    if (auto failure = co_await renew_all(**leases)) {
      co_await take_back(**leases);
      co_return std::move(*failure);
    }
  }
  if (session_.interrupt().raised()) {
    co_await take_back(**leases);
    co_return interrupted();
  }
  done_ = true;
  report_acquired(session_, (*leases)->leases(), granted_at_ - began_);
  Handout handout = hand_out(*leases);
  if (!handout.leases) co_await take_back(**leases);
  co_return handout;
}

Handout Acquisition::refuse_parent_lease() const {
  auto why = needs_own_lease_text("--detach", "use --detach outside of that, or with another key");
  return conclude(output::outcome_of("acquire", options_.resources, output::CommandResult::usage,
                                     std::move(why)));
}

/// Some of several locks were granted long before the last: each lease must last a ttl from now on.
asio::awaitable<std::optional<Handout>> Acquisition::renew_all(HeldSet& leases) {
  const ExtendResult renewed = co_await leases.extend();
  if (renewed.decision == ExtendDecision::confirmed) co_return std::nullopt;
  const bool lost = renewed.decision == ExtendDecision::lost;
  const output::CommandResult how =
      lost ? output::CommandResult::lost
           : output::result_for_faults(renewed.faults, session_.server_set().size());
  const std::string why = lost ? output::not_ours_text(renewed.not_ours)
                               : "no quorum; " + output::faults_text(renewed.faults);
  output::Outcome outcome = output::outcome_of("acquire", options_.resources, how,
                                               "lost again while the others were acquired: " + why);
  outcome.faults = renewed.faults;
  co_return conclude(outcome);
}

asio::awaitable<Handout> Acquisition::undo(std::shared_ptr<HeldSet> leases, std::string why) {
  co_await take_back(*leases);
  const std::string message = why + "; the lock was released again";
  co_return conclude(
      output::outcome_of("acquire", options_.resources, output::CommandResult::os_error, message));
}

Handout Acquisition::fail(const WaitFailure& failed) const {
  if (failed.failure.why == AcquireDecision::interrupted) return interrupted();
  const output::Outcome outcome =
      outcome_of_wait("acquire", options_, failed, session_.server_set().size());
  return conclude(outcome);
}

Handout Acquisition::hand_out(std::shared_ptr<HeldSet> leases) {
  const LeaseHandle handle = handle_of(leases->leases(), fingerprint(options_.servers));
  if (options_.token_file) {
    const auto written = write_lease_file(*options_.token_file, handle);
    if (!written) {
      const std::string message =
          "cannot write the lease to " + written.error() + "; the lock was released again";
      return conclude(output::outcome_of("acquire", options_.resources,
                                         output::CommandResult::os_error, message));
    }
    wrote_file_ = true;
  }
  std::string output;
  if (session_.json()) {
    const output::Outcome outcome =
        output::outcome_of("acquire", options_.resources, output::CommandResult::acquired, {});
    output = output::lease_json(outcome, leases->leases(), handle.text()) + "\n";
  } else if (options_.prints_export) {
    output = export_line(handle);
  } else if (!options_.token_file) {
    output = variables_of(handle).token + "\n";
  }
  return {Finish{}, std::move(output), std::move(leases)};
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

/// It does not reach the script.
asio::awaitable<void> Acquisition::take_back(HeldSet& leases) {
  if (done_) {
    co_await release(leases);
  } else {
    (void)co_await leases.release(/*by_hand=*/false);
  }
  if (wrote_file_) ::unlink(options_.token_file->c_str());
}

Handout Acquisition::interrupted() const {
  if (ended_by_ == 0) {
    std::string why =
        called_off_.empty()
            ? "the process that was to hand the lock over was killed; nothing was locked"
            : called_off_;
    return conclude(output::outcome_of("acquire", options_.resources,
                                       output::CommandResult::os_error, std::move(why)));
  }
  const Finish finish{0, ended_by_};
  output::Outcome outcome =
      output::outcome_of("acquire", options_.resources, output::CommandResult::interrupted, {});
  outcome.exit_code = exit_code_of(finish);
  session_.events().report(
      output::event::Concluded{outcome, /*acquired=*/false, session_.clock().now() - began_});
  return {finish, options_.prints_export ? failed_export_line(outcome.exit_code) : std::string(),
          nullptr};
}

Handout Acquisition::conclude(const output::Outcome& outcome) const {
  session_.events().report(
      output::event::Concluded{outcome, done_, session_.clock().now() - began_});
  Handout handout;
  handout.finish = Finish{outcome.exit_code};
  if (session_.json()) {
    handout.text = output::outcome_json(outcome) + "\n";
    output::Outcome without_keys = outcome;
    without_keys.resources.clear();
    handout.short_text = output::outcome_json(without_keys) + "\n";
  }
  if (options_.prints_export)
    handout.text = handout.short_text = failed_export_line(outcome.exit_code);
  return handout;
}

}  // namespace redlock::run
