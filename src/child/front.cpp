#include "child/front.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>

#include "child/cpu_share.hpp"
#include "child/descriptors.hpp"
#include "child/notify_socket.hpp"
#include "child/process_stat.hpp"
#include "child/shield.hpp"
#include "child/title.hpp"

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

/// The interval between two kills in the holder process's place: it must have some CPU for it, too.
constexpr Milliseconds help_interval{20};

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

Front::Front(SignalGate& gate, StopPlan plan, bool shares_group, std::optional<int> keep_fd,
             const Cgroup* cgroup)
    : gate_(gate),
      relay_(gate, shares_group),
      plan_(plan),
      keep_fd_(keep_fd),
      page_(make_shared_page()),
      job_control_(*page_, shares_group),
      tree_(page_->target),
      timer_(::timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC)) {
  if (!timer_) fail("timerfd_create");
  if (cgroup != nullptr) tree_.confine_to(*cgroup);
  page_->set_margin(plan_.margin);
  auto [front_end, holder_end] = Channel::make_pair();
  front_end_.emplace(std::move(front_end));
  holder_end_.emplace(std::move(holder_end));
}

bool Front::fork_holder(int argc, char** argv) {
  shielded_ = may_have_foreign_children();
  const pid_t witness = relay_.start_witness();
  child_ = ::fork();
  if (child_ < 0) fail("fork");
  if (child_ == 0) {
    front_end_.reset();
    if (shielded_) {
      set_title("lock-shield", argc, argv);
      become_shield(page_->shielded_holder);
    }
    set_title("lock-holder", argc, argv);
    return true;
  }
  holder_end_.reset();

  tree_.add_guard(child_);
  if (shielded_) tree_.set_root(child_);
  if (witness != 0) tree_.add_guard(witness);
  return false;
}

Verdict Front::guard() {
  while (!verdict_) {
    wait_for_event();
    pass_on(relay_.due());
    for (;;) {
      const auto [message, empty] = front_end_->receive();
      if (message) {
        on_message(*message);
      } else if (empty == Channel::Empty::ended && !verdict_) {
        take_over(Verdict::Source::holder_died);
      } else {
        break;
      }
    }
    if (!verdict_) watch(BootClock::now());
  }
  return *verdict_;
}

void Front::wait_for_holder() {
  if (reaped_ || (verdict_ && verdict_->unconfirmed)) return;
  while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Front::dismiss_holder() {
  front_end_.reset();
  wait_for_holder();
}

void Front::pass_on(const std::vector<int>& signals) {
  for (const int signal : signals) pass_on(signal);
}

void Front::pass_on(int signal) {
  front_end_->send({Message::Kind::signal, signal, {}});
  // CONT, because a holder process that another process stopped could not even end.
  if (holder() != 0) ::kill(holder(), SIGCONT);
}

void Front::on_message(const Message& message) {
  switch (message.kind) {
    case Message::Kind::may_start:
      // We pass on every signal up to here before this message, and it ends the wait.
      pass_on(relay_.command_starts());
      job_control_.command_starts();
      front_end_->send({Message::Kind::go, message.number, {}});
      break;
    case Message::Kind::waiting:
      pass_on(relay_.back_to_waiting());
      job_control_.back_to_waiting();
      break;
    case Message::Kind::paused:
      if (job_control_.command_paused(message.number)) pass_on(SIGCONT);
      break;
    case Message::Kind::ended:
      job_control_.command_ended();
      break;
    case Message::Kind::started:
      claim_cpu_share();
      close_inherited(keep_fd_);
      break;
    case Message::Kind::notify:
      tell_service_manager(message.text);
      front_end_->send({Message::Kind::notified, 0, {}});
      break;
    case Message::Kind::exited:
      verdict_.emplace();
      verdict_->exit_code = message.number;
      verdict_->report = message.text;
      break;
    case Message::Kind::died:
      verdict_.emplace();
      verdict_->signal = message.number;
      verdict_->report = message.text;
      break;
    case Message::Kind::signal:
    case Message::Kind::handed_over:
    case Message::Kind::notified:
    case Message::Kind::go:
      break;  // only we send these
  }
}

Instant Front::kill_at(Instant deadline) const {
  const Duration margin = page_->get_margin();
  return deadline - (margin - margin / head_start);
}

/// Its parent has not reaped it: its pid is still its own.
pid_t Front::holder() const {
  return shielded_ ? page_->shielded_holder.load() : child_;
}

void Front::watch(Instant now) {
  // Read once: the holder process may clear it meanwhile.
  const Instant deadline = page_->get_deadline();
  if (deadline == Instant::max() || plan_.on_lost == OnLost::warn) return;
  if (!terminated_ && !page_->stopping.load() && now >= terminate_at(deadline)) {
    terminated_ = true;
    // Set before the signal is sent: the holder process must know it when it sees the effect.
    page_->stopped_by_front = true;
    tree_.signal(plan_.stop_signal, kill_at(deadline));
  }
  const Instant kill = kill_at(deadline);
  if (plan_.on_lost != OnLost::kill || now < kill) return;

  const Instant progress = page_->last_seen_killing();
  const Duration timeout =
      page_->get_margin() / (progress < kill ? start_timeout : progress_timeout);
  if (now - std::max(progress, kill) >= timeout) return take_over(state_of_holder());
  if (now < helped_ + help_interval) return;
  // Not while it makes progress: the processes that it kills need the CPU to die.
  if (now - progress >= help_interval) tree_.kill(now + death_timeout);
  helped_ = BootClock::now();
}

Verdict::Source Front::state_of_holder() const {
  const auto stat = read_process_stat(holder());
  if (stat && stat->state == 'T') return Verdict::Source::holder_stopped;
  if (stat && stat->state == 'R') return Verdict::Source::holder_starved;
  return Verdict::Source::holder_hung;
}

/// Kills the holder process with all its descendants, and confirms their death.
void Front::take_over(Verdict::Source source) {
  const Instant deadline = page_->get_deadline();
  Instant got_on = BootClock::now();
  Verdict verdict;
  verdict.source = source;
  if (source != Verdict::Source::holder_died && holder() != 0) ::kill(holder(), SIGKILL);
  for (;;) {
    const Instant pass = BootClock::now();
    const bool dead = kill_and_confirm(pass + death_timeout);
    const Instant now = BootClock::now();
    if (dead && now > deadline && plan_.on_lost == OnLost::kill) verdict.late = now - deadline;
    if (tree_.got_on()) got_on = now;
    const Instant last = deadline == Instant::max() ? got_on : std::max(deadline, got_on);
    if (!dead && now >= last + death_timeout) {
      verdict.unconfirmed = true;
      verdict.left = tree_.descendants();
    }
    if (dead || verdict.unconfirmed) break;
    std::this_thread::sleep_for(std::clamp<Duration>(now - pass, kill_interval, max_kill_interval));
  }
  verdict_ = std::move(verdict);
}

/// True when all is dead, as waiting for our children or the exit status of the shield proves.
bool Front::kill_and_confirm(Instant until) {
  if (!shielded_) return reaped_ = tree_.kill_and_reap(until);
  tree_.kill(until);
  int status = 0;
  if (reaped_ || ::waitpid(child_, &status, WNOHANG) != child_) return false;
  reaped_ = true;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;  // a shield that was killed proves nothing
}

Instant Front::next_instant() const {
  Instant next = relay_.next_instant();
  const Instant deadline = page_->get_deadline();
  if (deadline == Instant::max() || plan_.on_lost == OnLost::warn) return next;
  const bool may_terminate = !terminated_ && !page_->stopping.load();
  if (may_terminate) next = std::min(next, terminate_at(deadline));
  if (plan_.on_lost == OnLost::kill)
    next = std::min(next, std::max(kill_at(deadline), helped_ + help_interval));
  return next;
}

void Front::wait_for_event() {
  itimerspec at{};
  if (const Instant next = next_instant(); next != Instant::max()) {
    const auto since_boot = std::max(next.time_since_epoch(), Duration(1));
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since_boot);
    at.it_value.tv_sec = seconds.count();
    at.it_value.tv_nsec = (since_boot - seconds).count();
  }
  if (::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &at, nullptr) != 0)
    fail("timerfd_settime");
  std::array<pollfd, 4> ready{pollfd{gate_.fd(), POLLIN, 0}, pollfd{front_end_->fd(), POLLIN, 0},
                              pollfd{timer_.get(), POLLIN, 0}, pollfd{relay_.fd(), POLLIN, 0}};
  if (::poll(ready.data(), ready.size(), -1) < 0 && errno != EINTR) fail("poll");
}

}  // namespace redlock::child
