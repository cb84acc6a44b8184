#include "run/tenancy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "child/title.hpp"
#include "run/nesting.hpp"
#include "run/wait.hpp"

namespace redlock::run {

Tenancy::Tenancy(const TenancyParts& parts, const RunOptions& options)
    : parts_(parts),
      options_(options),
      parents_(std::make_shared<ParentLinks>(
          parts.session.io().get_executor(), parts.session.clock(), parts.session.interrupt(),
          [&job = parts.job](int signal) { job.on_signal({signal}); })),
      changed_(parts.session.clock().make_event()),
      began_(now()) {}

asio::awaitable<Finish> Tenancy::live() {
  for (;;) {
    auto orders =
        co_await make_orders(options_, options_.stop.grace + options_.stop.margin, parents_.get());
    const bool needs_own = !option_for_own_leases().empty();
    if (needs_own && co_await has_parent_lease(parts_.session.server_set(), orders))
      co_return refuse_parent_lease();
    auto leases = co_await wait(std::move(orders));
    const Instant wait_ended = now();
    parts_.reporter.note_waited(wait_ended - began_);
    if (!leases) {
      const bool interrupted = leases.error().failure.why == AcquireDecision::interrupted;
      co_return interrupted ? conclude_interrupted()
                            : parts_.reporter.conclude_not_acquired(leases.error());
    }
    granted_at_ = wait_ended;
    if (needs_own && !are_our_own((*leases)->leases())) {
      (void)co_await (*leases)->release(/*by_hand=*/false);
      co_return refuse_parent_lease();
    }
    if (const auto finish = co_await skip_if_fresh(**leases)) co_return *finish;
    if (const auto finish = co_await run_under(std::move(*leases))) co_return *finish;
  }
}

/// A signal, or the end of another guard, ended the wait.
Finish Tenancy::conclude_interrupted() const {
  return parts_.job.ended_by() == 0
             ? parts_.reporter.conclude_guard_killed(
                   parts_.job.shield_is_gone() ? child::Guard::shield : child::Guard::front)
             : parts_.reporter.conclude_interrupted(parts_.job.ended_by());
}

/// Waits with the rest of --wait, which keeps counting while the job is paused.
asio::awaitable<Result<std::shared_ptr<HeldSet>, WaitFailure>> Tenancy::wait(
    std::vector<AcquireOrder> orders) {
  for (AcquireOrder& order : orders) {
    order.once_per = options_.once_per;
    // A job that was paused is no newer for it.
    if (supersession_) order.supersession = supersession_;
    supersession_ = order.supersession;
  }
  WaitPolicy policy = options_.wait;
  if (policy.wait) policy.wait = std::max(Duration::zero(), *policy.wait - (now() - began_));
  co_return co_await wait_for_locks(parts_.session, std::move(orders), policy,
                                    options_.insists_on_wait, parts_.job.group().value_or(0));
}

/// Under the lease of a process around this one there is no release that could record a run, or
/// keep the lock for the rest of --min-hold. A --min-hold that is the default of all runs must not
/// break nested ones. Empty: any lease will do.
std::string_view Tenancy::option_for_own_leases() const {
  if (options_.once_per) return "--once-per";
  if (options_.insists_on_min_hold) return "--min-hold";
  return {};
}

Finish Tenancy::refuse_parent_lease() const {
  const std::string_view option = option_for_own_leases();
  return parts_.reporter.conclude_refused(
      needs_own_lease_text(option, fmt::format("give {} to that run", option)));
}

/// --once-per. Returns nothing when the command is to run. A success counts that each key knows of:
/// a run records it with all of its keys.
asio::awaitable<std::optional<Finish>> Tenancy::skip_if_fresh(HeldSet& leases) {
  if (!options_.once_per) co_return std::nullopt;
  const auto& all = leases.leases();
  const bool all_fresh =
      std::ranges::all_of(all, [](const Lease& lease) { return lease.fresh.has_value(); });
  if (!all_fresh) co_return std::nullopt;
  const SetReleaseResult released = co_await leases.release(/*by_hand=*/false);
  co_return parts_.reporter.conclude_fresh(all, released);
}

/// Returns nothing when the job was paused, so that the lock was released: then wait again.
asio::awaitable<std::optional<Finish>> Tenancy::run_under(std::shared_ptr<HeldSet> leases) {
  parts_.reporter.note_acquired();
  const auto stay = std::make_shared<Stay>(std::move(leases), parts_, options_, *changed_);
  stay_ = stay;  // the job knows its supervisor until the end

  if (const auto ready = stay->prepare(); !ready)
    co_return co_await release(*stay, parts_.reporter.conclude_not_started(ready.error()));

  // The front process may be paused, so ask it before anything runs.
  stay->arm(granted_at_);
  const bool may_start = co_await parts_.job.may_start();
  if (parts_.session.interrupt().raised()) {
    stay->disarm();
    co_return co_await release(*stay, conclude_interrupted());
  }
  if (!may_start) {
    stay->disarm();
    co_await give_up_turn(*stay);
    co_return std::nullopt;
  }

  const auto started = stay->start();
  if (!started)
    co_return co_await release(*stay, parts_.reporter.conclude_not_started(started.error()));
  if (!*started) {
    stay->disarm();
    co_return co_await release(*stay, parts_.reporter.conclude_too_late());
  }

  stay->keep();
  const child::Ending ending = co_await stay->finish();
  // What the command left running sees that we no longer wait for it.
  child::set_name(child::releaser_title);
  const Instant ended = now();
  parts_.reporter.report_command_ended(ending, ended - granted_at_);
  if (ending.unkillable || !co_await stay->outlast_nested_runs()) {
    // Not released: the processes that still run must have the lock as long as possible.
    stay->end();
    co_return parts_.reporter.conclude_unkillable();
  }
  const Finish finish =
      co_await release(*stay, parts_.reporter.conclude_ended(), left_of_min_hold(ending), ended);
  co_await stay->report_left(ending.left);
  co_return finish;
}

/// The job is paused: others may have the lock until it continues.
asio::awaitable<void> Tenancy::give_up_turn(Stay& stay) {
  stay.end();
  (void)co_await stay.leases().release(/*by_hand=*/false);
  parts_.reporter.report_turn_given_up();
  co_await parts_.job.until_continued();
}

/// Releases the lease, or leaves it to expire after `expire_in`. `ended`: when the command ended;
/// nothing: it never ran. A lease that turns out to be no longer ours was lost while the command
/// ran.
asio::awaitable<Finish> Tenancy::release(Stay& stay, Finish finish, Duration expire_in,
                                         std::optional<Instant> ended) {
  stay.end();
  const auto owner = parts_.reporter.finished_owner(expire_in);
  std::optional<RunRecord> run;
  if (ended) run = parts_.reporter.run_record(*ended);
  const SetReleaseResult released =
      co_await stay.leases().release(/*by_hand=*/false, expire_in, owner, std::move(run));
  co_return parts_.reporter.conclude_released(stay.leases(), released, finish, expire_in);
}

Duration Tenancy::left_of_min_hold(const child::Ending& ending) const {
  return ending.stopped_for_lease
             ? Duration::zero()
             : std::max(Duration::zero(), options_.min_hold - (now() - granted_at_));
}

}  // namespace redlock::run
