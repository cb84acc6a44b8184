#include "guard/watchdog.hpp"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "proc/process_stat.hpp"

namespace redlock::guard {
namespace {

/// Fractions of the margin, as divisors. How much later than the holder process the front process
/// kills, so that the holder process can act first.
constexpr int head_start = 4;

/// How long a holder process may take to begin killing before it is killed itself. Half of the
/// margin is left then.
constexpr int start_timeout = 4;

/// The same for one that has begun but makes no progress. It may be waiting for a CPU; we kill the
/// command meanwhile, so it can have longer.
constexpr int progress_timeout = 2;

/// The margin in the page may grow. While it could become due earlier than known, it is read again
/// after this fraction (a divisor) of the remaining time, but not more often than the interval.
constexpr int recheck_divisor = 8;
constexpr Milliseconds min_recheck_interval{100};

/// The interval between two passes in which we kill in the holder process's place. The pause leaves
/// it some CPU to kill itself.
constexpr Milliseconds help_interval{20};

}  // namespace

Watchdog::Watchdog(StopPlan plan, SharedPage& page, const proc::Cgroup* cgroup)
    : plan_(plan), page_(page), tree_(page.target) {
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

Instant Watchdog::kill_at(Instant deadline) const {
  const Duration margin = page_.get_margin();
  return deadline - (margin - margin / head_start);
}

pid_t Watchdog::holder() const {
  return shielded_ ? page_.shielded_holder.load() : child_;
}

std::optional<HolderExit> Watchdog::watch(Instant now) {
  // Read once: the holder process may clear it meanwhile.
  const Instant deadline = page_.get_deadline();
  if (deadline == Instant::max() || plan_.on_lost == OnLost::warn) return std::nullopt;

  // Below a shield, the holder process is a descendant like those of the command: spare it.
  if (shielded_ && holder() != 0) tree_.add_guard(holder());

  if (!terminated_ && !page_.stopping.load() && now >= terminate_at(deadline)) {
    terminated_ = true;
    // Set before the signal is sent, so that the holder process knows the cause when it sees the
    // effect.
    page_.stopped_by_front = true;
    tree_.signal(plan_.stop_signal, kill_at(deadline));
  }

  const Instant kill = kill_at(deadline);
  if (plan_.on_lost != OnLost::kill || now < kill) return std::nullopt;

  const Instant progress = page_.last_seen_killing();
  const Duration timeout =
      page_.get_margin() / (progress < kill ? start_timeout : progress_timeout);
  if (now - std::max(progress, kill) >= timeout) return take_over(state_of_holder());

  if (now < helped_ + help_interval) return std::nullopt;
  // Only while it makes no progress, because the processes that it kills need the CPU to die.
  if (now - progress >= help_interval) tree_.kill(now + death_timeout);
  helped_ = BootClock::now();
  return std::nullopt;
}

HolderExit::Source Watchdog::state_of_holder() const {
  const auto stat = proc::read_process_stat(holder());
  if (stat && stat->state == 'T') return HolderExit::Source::holder_stopped;
  if (stat && stat->state == 'R') return HolderExit::Source::holder_starved;
  return HolderExit::Source::holder_hung;
}

HolderExit Watchdog::take_over(HolderExit::Source source) {
  const Instant deadline = page_.get_deadline();
  Instant last_progress = BootClock::now();
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
    if (dead && now > deadline && plan_.on_lost == OnLost::kill) holder_exit.late = now - deadline;
    if (tree_.made_progress()) last_progress = now;
    const Instant last =
        deadline == Instant::max() ? last_progress : std::max(deadline, last_progress);
    if (!dead && now >= last + death_timeout) {
      holder_exit.unkillable = true;
      holder_exit.left = tree_.descendants();
    }
    if (dead || holder_exit.unkillable) break;
    std::this_thread::sleep_for(std::clamp<Duration>(now - pass, kill_interval, max_kill_interval));
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

Instant Watchdog::next_instant() const {
  Instant next = Instant::max();
  const Instant deadline = page_.get_deadline();
  if (deadline == Instant::max() || plan_.on_lost == OnLost::warn) return next;

  const bool may_terminate = !terminated_ && !page_.stopping.load();
  if (may_terminate) next = std::min(next, terminate_at(deadline));
  if (plan_.on_lost == OnLost::kill)
    next = std::min(next, std::max(kill_at(deadline), helped_ + help_interval));
  if (next == Instant::max()) return next;

  // The holder process may raise the margin meanwhile, especially when it is late itself.
  const Duration growth = std::max(Duration::zero(), plan_.max_margin - page_.get_margin());
  const Instant now = BootClock::now();
  const Duration interval =
      std::max<Duration>(min_recheck_interval, (next - now) / recheck_divisor);
  return std::min(next, std::max(next - growth, now + interval));
}

}  // namespace redlock::guard
