#include "run/tenancy.hpp"

#include <algorithm>
#include <functional>

#include "run/nested_runs.hpp"
#include "run/nesting.hpp"
#include "run/wait.hpp"

namespace redlock::run {

struct Tenancy::Stay {
  Stay(std::shared_ptr<HeldSet> set, const TenancyParts& parts, const child::StopPlan& stop,
       child::SupervisorEvents events, std::function<void()> nested_ended)
      : leases(std::move(set)),
        supervisor(parts.session.clock(), stop, parts.page, parts.isolation, std::move(events)),
        nested(std::make_shared<NestedRuns>(parts.session.io().get_executor(),
                                            parts.session.clock(), leases->leases(),
                                            std::move(nested_ended))) {}

  void end() {
    over = true;
    nested->close();
  }

  std::shared_ptr<HeldSet> leases;
  child::Supervisor supervisor;
  std::shared_ptr<NestedRuns> nested;  ///< below the command
  bool over = false;
};

Tenancy::Tenancy(const TenancyParts& parts, const RunOptions& options)
    : parts_(parts),
      options_(options),
      parents_(std::make_shared<ParentLinks>(
          parts.session.io().get_executor(), parts.session.clock(), parts.session.interrupt(),
          [&job = parts.job](int signal) { job.on_signal(signal); })),
      changed_(parts.session.clock().make_event()),
      began_(now()) {}

asio::awaitable<Finish> Tenancy::live() {
  for (;;) {
    auto leases = co_await wait();
    const Instant wait_ended = now();
    parts_.reporter.note_waited(wait_ended - began_);
    if (!leases) {
      const bool interrupted = leases.error().failure.why == AttemptFailure::Why::interrupted;
      co_return interrupted ? parts_.reporter.conclude_interrupted(parts_.job.ended_by())
                            : parts_.reporter.conclude_not_acquired(leases.error());
    }
    granted_at_ = wait_ended;
    if (const auto finish = co_await skip_if_fresh(**leases)) co_return *finish;
    if (const auto finish = co_await run_under(std::move(*leases))) co_return *finish;
  }
}

/// Waits with the rest of --wait, which keeps counting while the job is paused.
asio::awaitable<Result<std::shared_ptr<HeldSet>, SetFailure>> Tenancy::wait() {
  auto orders =
      co_await make_orders(options_, options_.stop.grace + options_.stop.margin, parents_.get());
  for (AcquireOrder& order : orders) order.once_per = options_.once_per;
  WaitPolicy policy = options_.wait;
  if (policy.wait) policy.wait = std::max(Duration::zero(), *policy.wait - (now() - began_));
  co_return co_await wait_for_locks(parts_.session, std::move(orders), policy,
                                    parts_.job.group().value_or(0));
}

/// --once-per. Returns nothing when the command is to run. A success counts that each key knows of:
/// a run records it with all of its keys.
asio::awaitable<std::optional<Finish>> Tenancy::skip_if_fresh(HeldSet& leases) {
  if (!options_.once_per) co_return std::nullopt;
  const auto& all = leases.leases();
  const bool all_ours =
      std::ranges::all_of(all, [](const Lease& lease) { return lease.keeping == Keeping::own; });
  const bool all_fresh =
      std::ranges::all_of(all, [](const Lease& lease) { return lease.fresh.has_value(); });
  if (all_ours && !all_fresh) co_return std::nullopt;
  const SetReleaseResult released = co_await leases.release(/*by_hand=*/false);
  co_return all_ours ? parts_.reporter.conclude_fresh(all, released)
                     : parts_.reporter.conclude_not_recordable();
}

/// Returns nothing when the job was paused, so that the lock was released: then wait again.
asio::awaitable<std::optional<Finish>> Tenancy::run_under(std::shared_ptr<HeldSet> leases) {
  parts_.reporter.note_acquired();
  const auto stay = std::make_shared<Stay>(std::move(leases), parts_, options_.stop,
                                           supervisor_events(), [this] { changed_->notify(); });
  stay_ = stay;  // the job knows its supervisor until the end
  child::Supervisor& supervisor = stay->supervisor;

  if (const auto ready = prepare(*stay); !ready)
    co_return co_await release(*stay, parts_.reporter.conclude_not_started(ready.error()));

  // Both guards watch from here on. The front process may be paused, so ask it before anything
  // runs.
  supervisor.arm(stay->leases->deadline(), granted_at_);
  const bool may_start = co_await parts_.job.may_start();
  if (parts_.session.interrupt().raised()) {
    supervisor.drop();
    co_return co_await release(*stay, parts_.reporter.conclude_interrupted(parts_.job.ended_by()));
  }
  if (!may_start) {
    supervisor.drop();
    co_await give_up_turn(*stay);
    co_return std::nullopt;
  }

  const auto started = start(*stay);
  if (!started)
    co_return co_await release(*stay, parts_.reporter.conclude_not_started(started.error()));
  if (!*started) {
    supervisor.drop();
    co_return co_await release(*stay, parts_.reporter.conclude_too_late());
  }

  keep(stay);
  const child::Ending ending = co_await supervisor.finish();
  const Instant ended = now();
  parts_.reporter.report_command_ended(ending, ended - granted_at_);
  if (ending.unkillable) {
    // Not released: the processes that still run must have the lock as long as possible.
    stay->end();
    co_return parts_.reporter.conclude_unkillable();
  }
  if (!co_await outlast_nested_runs(*stay)) {
    stay->end();
    co_return parts_.reporter.conclude_unkillable();
  }
  co_return co_await release(*stay, parts_.reporter.conclude_ended(), left_of_min_hold(ending),
                             ended);
}

Result<void, child::ExecFailure> Tenancy::prepare(Stay& stay) {
  child::SpawnOptions spawn_options;
  spawn_options.environment =
      child::environment_with(lease_variables(stay.leases->leases(), options_.servers));
  spawn_options.join_group = parts_.job.group();
  stay.nested->listen();
  return stay.supervisor.prepare(options_.command, std::move(spawn_options), parts_.inherited);
}

/// False: the deadline is too near to run in.
Result<bool, child::ExecFailure> Tenancy::start(Stay& stay) {
  parts_.reporter.report_granted(stay.leases->leases());
  if (stay.leases->lost()) return false;  // one of several, while the front process was asked
  auto started = stay.supervisor.start();
  if (!started || !*started) return started;
  parts_.reporter.note_started();
  parts_.job.command_started(stay.supervisor);
  parts_.inherited_descriptors.close(std::nullopt);
  return true;
}

/// Renews in the background, and reports to the supervisor what it must know.
void Tenancy::keep(const std::shared_ptr<Stay>& stay) {
  SetEvents events;
  events.extended = [this, stay](bool after_trouble) {
    if (stay->over) return;
    stay->supervisor.move_deadline(stay->leases->deadline());
    parts_.reporter.report_extended(after_trouble);
  };
  events.in_trouble = [this, stay](const Resource& resource, const LeaseInTrouble& trouble) {
    if (!stay->over) parts_.reporter.report_trouble(resource, trouble);
  };
  events.ended = [this, stay](const Resource& resource, const LeaseEnded& end) {
    if (stay->over) return;
    parts_.reporter.note_lost(resource, end);
    stay->supervisor.lease_is_lost();
    changed_->notify();
  };
  stay->leases->keep(std::move(events));
}

/// Nested runs that the command left behind may live on our lease: they notice its end only at
/// their next check, too late. False when some had to be stopped and could not be.
asio::awaitable<bool> Tenancy::outlast_nested_runs(Stay& stay) {
  stay.nested->close();
  if (stay.nested->empty() || stay.leases->lost()) co_return true;
  parts_.reporter.report_outlasting(stay.nested->holders());
  parts_.job.set_nested_runs(stay.nested);

  const Interrupt::Listener front_gone(parts_.session.interrupt(), *changed_);
  const Instant hold_until = stay.supervisor.hold_until();
  while (!stay.nested->empty() && !stay.leases->lost() && !parts_.job.front_is_gone() &&
         now() < hold_until)
    co_await changed_->wait_until(hold_until);
  if (parts_.job.front_is_gone()) {
    (void)co_await stay.supervisor.kill_rest();
  } else if (!stay.nested->empty() && !stay.leases->lost()) {
    parts_.reporter.report_max_hold();
    co_return co_await stay.supervisor.stop_rest();
  }
  co_return true;
}

/// The job is paused: others may have the lock until it continues.
asio::awaitable<void> Tenancy::give_up_turn(Stay& stay) {
  stay.end();
  (void)co_await stay.leases->release(/*by_hand=*/false);
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
      co_await stay.leases->release(/*by_hand=*/false, expire_in, owner, std::move(run));
  co_return parts_.reporter.conclude_released(*stay.leases, released, finish, expire_in);
}

Duration Tenancy::left_of_min_hold(const child::Ending& ending) const {
  return ending.stopped_for_lease
             ? Duration::zero()
             : std::max(Duration::zero(), options_.min_hold - (now() - granted_at_));
}

child::SupervisorEvents Tenancy::supervisor_events() {
  child::SupervisorEvents events;
  events.ended = [this](bool told_to_end) { parts_.job.command_ended(told_to_end); };
  events.stopping = [this](child::StopReason reason, const child::Delay& delay) {
    reason == child::StopReason::max_hold ? parts_.reporter.report_max_hold()
                                          : parts_.reporter.report_stopping(delay);
  };
  events.strained = [this](const StopCost& cost, Duration needed) {
    parts_.reporter.report_strained(cost, needed);
  };
  events.unkillable = [this](const std::vector<pid_t>& pids) {
    parts_.reporter.report_unkillable(pids);
  };
  return events;
}

}  // namespace redlock::run
