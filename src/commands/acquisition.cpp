#include "commands/acquisition.hpp"

#include <utility>

#include "commands/nesting.hpp"
#include "commands/wait.hpp"
#include "output/failure_text.hpp"

namespace redlock::commands {

using output::CommandResult;

Acquisition::Acquisition(Session& session, const LockOptions& options, Demands demands)
    : session_(session),
      options_(options),
      demands_(std::move(demands)),
      began_(session.clock().now()),
      ended_(began_) {}

asio::awaitable<Result<std::shared_ptr<HeldSet>, NotGranted>> Acquisition::acquire() {
  auto orders = make_orders(options_, demands_.needed_validity);
  const bool needs_own = !demands_.own_for.empty();
  if (needs_own && co_await has_parent_lease(session_.server_set(), orders))
    co_return unexpected<NotGranted>(needs_own_lease());

  auto granted = co_await wait(std::move(orders));
  ended_ = session_.clock().now();
  if (!granted) co_return unexpected<NotGranted>(failed(granted.error()));
  auto obstacle = co_await find_obstacle(**granted);
  if (obstacle) {
    (void)co_await (*granted)->release();
    co_return unexpected<NotGranted>(std::move(*obstacle));
  }
  co_return std::move(*granted);
}

/// Waits for the rest of --wait, whose time also passes while the job is paused.
asio::awaitable<Result<std::shared_ptr<HeldSet>, WaitFailure>> Acquisition::wait(
    std::vector<AcquireOrder> orders) {
  for (AcquireOrder& order : orders) {
    order.once_per = demands_.once_per;
    if (supersession_) order.supersession = supersession_;
    supersession_ = order.supersession;
  }
  const WaitPolicy policy = options_.wait.after(session_.clock().now() - began_);
  // With --replace, the holder may be an enclosing run: stopping that would stop us, too.
  const bool insists_on_wait = options_.insists_on_wait && !options_.replaces;
  co_return co_await wait_for_locks(session_, std::move(orders), policy, insists_on_wait);
}

/// Why these leases, which are granted, must be released at once; nullopt: they may be used.
asio::awaitable<std::optional<NotGranted>> Acquisition::find_obstacle(HeldSet& leases) {
  if (!demands_.own_for.empty() && !are_our_own(leases.leases())) co_return needs_own_lease();
  if (demands_.renews_all && leases.leases().size() > 1 && !session_.interrupt().raised()) {
    const ExtendResult renewed = co_await leases.extend();
    if (renewed.decision != ExtendDecision::confirmed) co_return not_renewed(renewed);
  }
  if (const auto& asked = leases.stop_requested()) co_return failed(stopped_by(*asked));
  if (session_.interrupt().raised()) co_return NotGranted{{}, std::nullopt, true};
  co_return std::nullopt;
}

NotGranted Acquisition::failed(const WaitFailure& failure) const {
  if (failure.failure.why == AcquireDecision::interrupted) return {{}, std::nullopt, true};
  NotGranted why{outcome_of_wait(demands_.command, options_, failure, session_.server_set().size()),
                 failure.stop_request};
  why.outcome.message += demands_.not_granted;
  return why;
}

NotGranted Acquisition::needs_own_lease() const {
  return {output::outcome_of(demands_.command, options_.resources, CommandResult::usage,
                             needs_own_lease_text(demands_.own_for, demands_.own_advice))};
}

NotGranted Acquisition::not_renewed(const ExtendResult& renewed) const {
  output::Outcome outcome = output::outcome_of(
      demands_.command, options_.resources,
      output::result_of(renewed, session_.server_set().size()),
      "lost while the other keys were acquired: " + output::failure_text(renewed));
  outcome.faults = renewed.faults;
  return {std::move(outcome)};
}

}  // namespace redlock::commands
