#include "child/supervisor.hpp"

#include <fcntl.h>
#include <signal.h>

#include <algorithm>

namespace redlock::child {
namespace {

/// Between two walks through a tree that does not die at once.
constexpr Milliseconds kill_interval{2};

bool has_controlling_terminal() {
  return static_cast<bool>(UniqueFd(::open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC)));
}

}  // namespace

Supervisor::Supervisor(const Clock& clock, StopPlan plan) : clock_(clock), plan_(plan), bell_(clock.make_bell()) {}

Result<void, ExecFailure> Supervisor::start(const Command& command, std::vector<std::string> environment, const InheritedSignals& inherited,
                                            Instant deadline) {
  deadline_ = deadline;
  own_group_ = !has_controlling_terminal();
  auto pid = spawn(command, SpawnOptions{std::move(environment), own_group_}, inherited);
  if (!pid) return unexpected<ExecFailure>(std::move(pid.error()));
  pid_ = *pid;
  return {};
}

void Supervisor::move_deadline(Instant deadline) {
  deadline_ = std::max(deadline_, deadline);
  bell_->ring();
}

void Supervisor::lease_is_over() {
  lease_gone_ = true;
  bell_->ring();
}

void Supervisor::on_signal(const ReceivedSignal& signal) {
  if (signal.number == SIGCHLD) {
    reap();
    bell_->ring();
    return;
  }
  if (status_) return;
  if (own_group_) {
    ::kill(-pid_, signal.number);
  } else if (!signal.from_kernel && ends_a_wait(signal.number)) {
    // What the terminal sent, the command has got as well: it is in our group. So it has CONT and WINCH, which shells send to the group.
    ::kill(pid_, signal.number);
  }
}

asio::awaitable<Ending> Supervisor::finish() {
  for (;;) {
    reap();
    const Instant now = clock_.now();
    if (status_ && !is_stopping()) break;
    if (!is_stopping() && (lease_gone_ || now >= deadline_ - plan_.margin - plan_.grace)) stop(now);
    if (is_stopping() && now >= *kill_at_) {
      while (!tree_.kill_and_reap()) co_await sleep_until(clock_, clock_.now() + kill_interval);
      reap();
    }
    if (is_stopping() && status_ && (kill_at_ == Instant::max() || tree_.descendants().empty())) break;
    co_await bell_->wait_until(next_instant());
  }
  co_return Ending{*status_, lease_gone_, tree_.descendants()};
}

void Supervisor::reap() {
  while (const auto ended = tree_.reap()) {
    if (ended->pid == pid_) status_ = ended->status;
  }
}

void Supervisor::stop(Instant now) {
  lease_gone_ = true;
  kill_at_ = plan_.on_lost == OnLost::kill ? std::min(now + plan_.grace, deadline_ - plan_.margin) : Instant::max();
  if (plan_.on_lost != OnLost::warn) tree_.signal(plan_.stop_signal);
}

Instant Supervisor::next_instant() const {
  return is_stopping() ? *kill_at_ : deadline_ - plan_.margin - plan_.grace;
}

}  // namespace redlock::child
