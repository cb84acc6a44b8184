#include "run/stay.hpp"

#include "run/nesting.hpp"

namespace redlock::run {

Stay::Stay(std::shared_ptr<HeldSet> leases, const TenancyParts& parts, const RunOptions& options,
           Event& changed)
    : parts_(parts),
      options_(options),
      changed_(changed),
      leases_(std::move(leases)),
      supervisor_(parts.session.clock(), options.stop, parts.page, parts.isolation,
                  supervisor_events()),
      nested_(std::make_shared<NestedRuns>(parts.session.io().get_executor(), parts.session.clock(),
                                           leases_->leases(), [&changed] { changed.notify(); })) {}

Result<void, child::ExecFailure> Stay::prepare() {
  child::SpawnOptions spawn_options;
  spawn_options.environment =
      child::environment_with(lease_variables(leases_->leases(), options_.servers));
  spawn_options.join_group = parts_.job.group();
  nested_->listen();
  return supervisor_.prepare(options_.command, std::move(spawn_options), parts_.inherited);
}

void Stay::arm(Instant granted_at) {
  supervisor_.arm(leases_->deadline(), granted_at);
}

Result<bool, child::ExecFailure> Stay::start() {
  parts_.reporter.report_granted(leases_->leases());
  if (leases_->lost()) return false;  // one of several, while the front process was asked
  auto started = supervisor_.start();
  if (!started || !*started) return started;
  parts_.reporter.note_started();
  parts_.job.command_started(supervisor_);
  parts_.inherited_descriptors.close(std::nullopt);
  return true;
}

void Stay::keep() {
  SetEvents events;
  events.extended = [stay = shared_from_this()](bool after_trouble) {
    if (stay->over_) return;
    stay->supervisor_.move_deadline(stay->leases_->deadline());
    stay->parts_.reporter.report_extended(after_trouble);
  };
  events.in_trouble = [stay = shared_from_this()](const Resource& resource,
                                                  const LeaseInTrouble& trouble) {
    if (!stay->over_) stay->parts_.reporter.report_trouble(resource, trouble);
  };
  events.ended = [stay = shared_from_this()](const Resource& resource, const LeaseEnded& end) {
    if (stay->over_) return;
    stay->parts_.reporter.note_lost(resource, end);
    stay->supervisor_.lease_is_lost();
    stay->changed_.notify();
  };
  leases_->keep(std::move(events));
}

asio::awaitable<void> Stay::report_left(std::vector<pid_t> left) {
  if (!left.empty()) co_await supervisor_.settle(left);
  parts_.reporter.report_left(left);
}

asio::awaitable<bool> Stay::outlast_nested_runs() {
  nested_->close();
  if (nested_->empty() || leases_->lost()) co_return true;
  parts_.reporter.report_outlasting(nested_->holders());
  parts_.job.set_nested_runs(nested_);

  const Interrupt::Listener guard_gone(parts_.session.interrupt(), changed_);
  const Instant hold_until = supervisor_.hold_until();
  while (!nested_->empty() && !leases_->lost() && !parts_.job.guard_is_gone() && now() < hold_until)
    co_await changed_.wait_until(hold_until);
  if (parts_.job.guard_is_gone()) co_return co_await supervisor_.kill_rest();
  if (!nested_->empty() && !leases_->lost()) {
    parts_.reporter.report_max_hold();
    co_return co_await supervisor_.stop_rest();
  }
  co_return true;
}

void Stay::end() {
  over_ = true;
  nested_->close();
}

child::SupervisorEvents Stay::supervisor_events() {
  Job& job = parts_.job;
  RunReporter& reporter = parts_.reporter;
  child::SupervisorEvents events;
  events.ended = [&job](bool told_to_end) { job.command_ended(told_to_end); };
  events.stopping = [&reporter](child::StopReason reason, const child::Delay& delay) {
    reason == child::StopReason::max_hold ? reporter.report_max_hold()
                                          : reporter.report_stopping(delay);
  };
  events.strained = [&reporter](const StopCost& cost, Duration needed) {
    reporter.report_strained(cost, needed);
  };
  events.awaiting = [&reporter](const std::vector<pid_t>& pids) { reporter.report_awaiting(pids); };
  events.unkillable = [&reporter](const std::vector<pid_t>& pids) {
    reporter.report_unkillable(pids);
  };
  return events;
}

}  // namespace redlock::run
