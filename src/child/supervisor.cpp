#include "child/supervisor.hpp"

#include <signal.h>

#include <algorithm>

namespace redlock::child {
namespace {

/// Between two walks through a tree that does not die at once.
constexpr Milliseconds kill_interval{2};

}  // namespace

Supervisor::Supervisor(const Clock& clock, StopPlan plan, SharedPage& page)
    : clock_(clock), plan_(plan), page_(page), bell_(clock.make_bell()) {}

Result<void, ExecFailure> Supervisor::prepare(const Command& command, const SpawnOptions& options, const InheritedSignals& inherited) {
  auto ready = ReadyCommand::prepare(command, options, inherited);
  if (!ready) return unexpected<ExecFailure>(std::move(ready.error()));
  leads_group_ = !options.join_group;
  ready_.emplace(std::move(*ready));
  return {};
}

void Supervisor::arm(Instant deadline) {
  deadline_ = deadline;
  page_.set_deadline(deadline_);
}

void Supervisor::drop() {
  ready_.reset();
  page_.clear_deadline();
}

Result<bool, ExecFailure> Supervisor::start() {
  if (clock_.now() >= terminate_at()) return false;
  pid_ = ready_->pid();
  if (auto started = ready_->start(); !started) {
    page_.clear_deadline();
    return unexpected<ExecFailure>(std::move(started.error()));
  }
  ready_.reset();
  return true;
}

void Supervisor::move_deadline(Instant deadline) {
  deadline_ = std::max(deadline_, deadline);
  if (pid_ != 0) page_.set_deadline(deadline_);
  bell_->ring();
}

void Supervisor::lease_is_over() {
  lease_gone_ = true;
  bell_->ring();
}

void Supervisor::front_is_gone() {
  kill_at_ = Instant();
  bell_->ring();
}

void Supervisor::pass_on(int signal) {
  if (!status_) ::kill(leads_group_ ? -pid_ : pid_, signal);
}

void Supervisor::on_child() {
  bell_->ring();
}

asio::awaitable<Ending> Supervisor::finish() {
  bool unconfirmed = false;
  for (;;) {
    reap();
    const Instant now = clock_.now();
    if (status_ && !is_stopping() && !page_.stopped_by_front && may_leave(now)) break;
    if (!is_stopping() && (lease_gone_ || page_.stopped_by_front || now >= terminate_at())) stop(now);
    if (is_stopping() && now >= *kill_at_) {
      if (!status_) pass_on(SIGKILL);  // the tree cannot be seen where there is no /proc
      // While something cannot be killed (setuid, D state), the lease is kept for as long as it can be.
      while (!tree_.kill_and_reap()) {
        unconfirmed = clock_.now() >= std::max(deadline_, now + death_patience);
        if (unconfirmed) break;
        co_await sleep_until(clock_, clock_.now() + kill_interval);
      }
      reap();
      break;
    }
    if (is_stopping() && status_ && (*kill_at_ == Instant::max() || tree_.nothing_left())) break;
    co_await bell_->wait_until(is_stopping() ? *kill_at_ : terminate_at());
  }
  page_.clear_deadline();
  co_return Ending{status_.value_or(SIGKILL), lease_gone_, unconfirmed, tree_.descendants()};
}

bool Supervisor::may_leave(Instant now) {
  if (plan_.descendants == Descendants::leave || tree_.nothing_left()) return true;
  if (plan_.descendants == Descendants::kill) {
    kill_at_ = std::min(now + plan_.grace, deadline_ - plan_.margin);
    tree_.signal(plan_.stop_signal);
  }
  return false;
}

void Supervisor::reap() {
  while (const auto ended = tree_.reap()) {
    if (ended->pid == pid_) status_ = ended->status;
  }
}

void Supervisor::stop(Instant now) {
  lease_gone_ = true;
  page_.stopping = true;
  kill_at_ = plan_.on_lost == OnLost::kill ? std::min(now + plan_.grace, deadline_ - plan_.margin) : Instant::max();
  if (plan_.on_lost == OnLost::warn || tree_.signal(plan_.stop_signal) > 0) return;
  pass_on(plan_.stop_signal);
  pass_on(SIGCONT);
}

}  // namespace redlock::child
