#include "child/watchdog.hpp"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "child/process_stat.hpp"

namespace redlock::child {
namespace {

/// Shares of the margin, as divisors. By so much the front process kills later than the holder
/// process is to: that must have the time to act first.
constexpr int head_start = 4;

/// For so long a holder process that has not begun to kill may go without doing so, before it is
/// killed, too: half of the margin is left then.
constexpr int start_timeout = 4;

/// The same for one that has begun and makes no progress. It may have to wait for a CPU; its
/// command is being killed meanwhile, so there is time.
constexpr int progress_timeout = 2;

/// While the margin may have grown to more than what is left, it is read again after this part of
/// what is left, as a divisor, but not more often than that.
constexpr int look_part = 8;
constexpr Milliseconds min_look_interval{100};

/// The interval between two kills in the holder process's place: it must have some CPU for it, too.
constexpr Milliseconds help_interval{20};

}  // namespace

Watchdog::Watchdog(StopPlan plan, SharedPage& page, const Cgroup* cgroup)
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
  // Our child, when its shield was killed.
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
    // A witness that was killed would hide all that end after it.
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

std::optional<Verdict> Watchdog::watch(Instant now) {
  // Read once: the holder process may clear it meanwhile.
  const Instant deadline = page_.get_deadline();
  if (deadline == Instant::max() || plan_.on_lost == OnLost::warn) return std::nullopt;
  // Below a shield it is a descendant like the command.
  if (shielded_ && holder() != 0) tree_.add_guard(holder());
  if (!terminated_ && !page_.stopping.load() && now >= terminate_at(deadline)) {
    terminated_ = true;
    // Set before the signal is sent: the holder process must know it when it sees the effect.
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
  // Not while it makes progress: the processes that it kills need the CPU to die.
  if (now - progress >= help_interval) tree_.kill(now + death_timeout);
  helped_ = BootClock::now();
  return std::nullopt;
}

Verdict::Source Watchdog::state_of_holder() const {
  const auto stat = read_process_stat(holder());
  if (stat && stat->state == 'T') return Verdict::Source::holder_stopped;
  if (stat && stat->state == 'R') return Verdict::Source::holder_starved;
  return Verdict::Source::holder_hung;
}

Verdict Watchdog::take_over(Verdict::Source source) {
  const Instant deadline = page_.get_deadline();
  Instant got_on = BootClock::now();
  Verdict verdict;
  verdict.source = source;
  // The shield, and with it our end of the channel, is gone, and no holder process has been there.
  if (shielded_ && holder() == 0) {
    verdict.source = Verdict::Source::not_forked;
    return verdict;
  }
  if (source != Verdict::Source::holder_died && holder() != 0) ::kill(holder(), SIGKILL);
  if (shielded_) tree_.remove_guard(holder());
  for (;;) {
    const Instant pass = BootClock::now();
    const bool dead = kill_and_confirm(pass + death_timeout);
    const Instant now = BootClock::now();
    if (dead && now > deadline && plan_.on_lost == OnLost::kill) verdict.late = now - deadline;
    if (tree_.got_on()) got_on = now;
    const Instant last = deadline == Instant::max() ? got_on : std::max(deadline, got_on);
    if (!dead && now >= last + death_timeout) {
      verdict.unkillable = true;
      verdict.left = tree_.descendants();
    }
    if (dead || verdict.unkillable) break;
    std::this_thread::sleep_for(std::clamp<Duration>(now - pass, kill_interval, max_kill_interval));
  }
  return verdict;
}

/// True when all is dead, as waiting for our children or the exit status of the shield proves.
bool Watchdog::kill_and_confirm(Instant until) {
  if (!shielded_) return reaped_ = tree_.kill_and_reap(until);
  tree_.kill(until);
  if (reaped_) return false;
  ::kill(child_, SIGCONT);  // only it can prove that all are dead
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
  // The holder process may raise the margin meanwhile, and does so where it is late itself.
  const Duration growth = std::max(Duration::zero(), plan_.max_margin - page_.get_margin());
  const Instant now = BootClock::now();
  const Duration interval = std::max<Duration>(min_look_interval, (next - now) / look_part);
  return std::min(next, std::max(next - growth, now + interval));
}

}  // namespace redlock::child
