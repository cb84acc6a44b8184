#include "guard/watchdog.hpp"

#include <signal.h>
#include <sys/wait.h>

#include <cerrno>
#include <thread>

#include "guard/step_trace.hpp"
#include "proc/process_stat.hpp"

namespace redlock::guard {

Watchdog::Watchdog(StopPlan plan, SharedPage& page, const proc::Cgroup* cgroup)
    : plan_(plan), page_(page), schedule_(plan, StopSchedule::Guard::second), tree_(page.target) {
  if (cgroup != nullptr) tree_.confine_to(*cgroup);
  page_.set_margin(plan_.margin);
}

void Watchdog::watch_over(pid_t child, bool shielded) {
  child_ = child;
  shielded_ = shielded;
  tree_.add_guard(child_);
  if (shielded_) tree_.set_root(child_);
}

void Watchdog::wait_for_holder() {
  for (int status = 0; !reaped_;) {
    const pid_t ended = ::waitpid(child_, &status, WUNTRACED);
    if (ended < 0 && errno == EINTR) continue;
    if (ended == child_ && WIFSTOPPED(status)) {
      ::kill(child_, SIGCONT);
      continue;
    }
    reaped_ = true;
  }
  // If its shield was killed, the holder process is our child.
  while (shielded_ && holder() != 0 && ::waitpid(holder(), nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Watchdog::tend_children() {
  if (!shielded_) return;
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(child_), &info, WSTOPPED | WNOHANG) == 0 &&
      info.si_pid == child_)
    ::kill(child_, SIGCONT);

  for (;;) {
    info = {};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    // When its shield was killed, the holder process is our child.
    const pid_t ended = info.si_pid;
    if (ended == child_ || ended == holder()) return;
    // Reap a witness that was killed: unreaped, it would hide the children that end after it.
    if (ended == witness_) {
      tree_.remove_guard(witness_);
      witness_ = 0;
    }
    ::waitpid(ended, nullptr, WNOHANG);
  }
}

pid_t Watchdog::holder() const {
  return shielded_ ? page_.shielded_holder.load() : child_;
}

std::optional<HolderExit> Watchdog::watch(Instant now) {
  read_page();
  // Below a shield, the holder process is a descendant like those of the command: spare it.
  if (shielded_ && holder() != 0) tree_.add_guard(holder());

  for (;;) {
    const StopStep step = schedule_.step(now);
    trace_step(step);
    switch (step.action) {
      case StopAction::terminate:
        // Set before the signal is sent, so that the holder process knows the cause when it sees
        // the effect.
        page_.stopped_by_front = true;
        tree_.signal(plan_.stop_signal, schedule_.kill_at());
        break;
      case StopAction::kill:
        tree_.kill(now + death_timeout);
        (void)schedule_.after_pass(now, BootClock::now(), tree_.made_progress());
        return std::nullopt;
      case StopAction::replace:
        return take_over(state_of_holder());
      case StopAction::join:
        break;
      default:
        return std::nullopt;
    }
  }
}

/// The holder process may change the page meanwhile, so one decision must use one reading.
void Watchdog::read_page() {
  schedule_.set_deadline(page_.get_deadline());
  schedule_.set_margin(page_.get_margin());
  schedule_.set_progress_of_other(page_.last_seen_killing());
  if (page_.stopping) schedule_.other_has_signalled();
}

HolderExit::Source Watchdog::state_of_holder() const {
  const auto stat = proc::read_process_stat(holder());
  if (stat && stat->state == 'T') return HolderExit::Source::holder_stopped;
  if (stat && stat->state == 'R') return HolderExit::Source::holder_starved;
  return HolderExit::Source::holder_hung;
}

HolderExit Watchdog::take_over(HolderExit::Source source) {
  read_page();
  schedule_.begin_killing(BootClock::now());
  HolderExit holder_exit;
  holder_exit.source = source;

  // The shield has ended, and with it the channel, without having forked a holder process.
  if (shielded_ && holder() == 0) {
    holder_exit.source = HolderExit::Source::not_forked;
    return holder_exit;
  }

  if (source != HolderExit::Source::holder_died && holder() != 0) ::kill(holder(), SIGKILL);
  if (shielded_) tree_.remove_guard(holder());

  for (;;) {
    const Instant pass = BootClock::now();
    const bool dead = kill_and_confirm(pass + death_timeout);
    const Instant now = BootClock::now();
    const StopStep step = schedule_.after_pass(pass, now, tree_.made_progress());
    trace_step(step);
    const bool must_be_dead = page_.command_starts && plan_.on_lost == OnLost::kill;
    if (dead && must_be_dead && now > schedule_.deadline())
      holder_exit.late = now - schedule_.deadline();
    if (!dead && step.action == StopAction::give_up) {
      holder_exit.unkillable = true;
      holder_exit.left = tree_.descendants();
    }
    if (dead || holder_exit.unkillable) break;
    std::this_thread::sleep_until(step.next);
  }
  return holder_exit;
}

/// Returns whether all are dead, as proved by waiting for our children, or by the exit status of
/// the shield.
bool Watchdog::kill_and_confirm(Instant until) {
  if (!shielded_) return reaped_ = tree_.kill_and_reap(until);
  tree_.kill(until);
  if (reaped_) return false;
  ::kill(child_, SIGCONT);  // only the shield can prove that all are dead
  int status = 0;
  if (::waitpid(child_, &status, WNOHANG) != child_) return false;
  reaped_ = true;
  tree_.root_is_gone();
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;  // a shield that was killed proves nothing
}

Instant Watchdog::next_instant() {
  read_page();
  return schedule_.next(BootClock::now());
}

}  // namespace redlock::guard
