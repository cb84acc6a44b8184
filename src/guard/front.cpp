#include "guard/front.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "guard/notify_socket.hpp"
#include "proc/cpu_share.hpp"
#include "proc/title.hpp"
#include "support/kernel_calls.hpp"
#include "support/trace.hpp"

namespace redlock::guard {

Front::Front(SignalGate& gate, StopPlan plan, bool shares_group, std::optional<int> keep_fd,
             const proc::Cgroup* cgroup)
    : gate_(gate),
      pid_(::getpid()),
      job_group_(shares_group ? std::optional(::getpgrp()) : std::nullopt),
      page_(make_shared_page()),
      relay_(gate, page_->target, shares_group, page_->signals_of_front),
      keep_fd_(keep_fd),
      job_control_(*page_, shares_group),
      watchdog_(plan, *page_, cgroup),
      timer_(::timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC)) {
  if (!timer_) throw_errno("timerfd_create");
  auto [front_end, holder_end] = Channel::make_pair();
  front_end_.emplace(std::move(front_end));
  holder_end_.emplace(std::move(holder_end));
}

bool Front::fork_holder(int argc, char** argv, proc::CiCookies cookies) {
  const bool shielded = may_have_foreign_children();
  const pid_t witness = relay_.start_witness(argc, argv);
  const pid_t child = ::fork();
  if (child < 0) throw_errno("fork");
  if (child == 0) {
    front_end_.reset();
    set_trace_name("holder");
    if (cookies == proc::CiCookies::hide) proc::hide_ci_cookies();
    if (shielded) {
      proc::set_title(proc::shield_title, argc, argv);
      shield_ = become_shield(page_->shielded_holder);
    }
    proc::set_title(proc::holder_title, argc, argv);
    return true;
  }
  holder_end_.reset();
  set_trace_name("front");

  watchdog_.watch_over(child, shielded);
  if (witness != 0) watchdog_.add_witness(witness);
  return false;
}

HolderExit Front::guard() {
  while (!holder_exit_) {
    wait_for_event();
    pass_on(relay_.due());
    // After relay_.due(), which has read a SIGCHLD that is not reported again.
    watchdog_.tend_children();
    for (;;) {
      const auto [message, empty] = front_end_->receive();
      if (message) {
        on_message(*message);
      } else if (empty == Channel::Empty::ended && !holder_exit_) {
        holder_exit_ = watchdog_.take_over(HolderExit::Source::holder_died);
      } else {
        break;
      }
    }
    if (!holder_exit_) holder_exit_ = watchdog_.watch(BootClock::now());
  }
  holder_exit_->command_began = page_->command_starts;
  return *holder_exit_;
}

void Front::wait_for_holder() {
  if (!holder_exit_ || !holder_exit_->unkillable) watchdog_.wait_for_holder();
}

void Front::dismiss_holder() {
  front_end_.reset();
  wait_for_holder();
}

void Front::pass_on(const std::vector<PassedSignal>& signals) {
  for (const PassedSignal& signal : signals) pass_on(signal);
}

void Front::pass_on(const PassedSignal& signal) {
  front_end_->send({Message::Kind::signal, signal.number, {}, signal.sender, signal.reached_job});
  // Wakes a holder process that another process has stopped, so that it can handle the signal.
  if (watchdog_.holder() != 0) ::kill(watchdog_.holder(), SIGCONT);
}

void Front::on_message(const Message& message) {
  switch (message.kind) {
    case Message::Kind::may_start:
      // Every signal that came before this message is passed on first, and ends the wait.
      pass_on(relay_.command_starts());
      job_control_.command_starts();
      front_end_->send({Message::Kind::go, message.number, {}});
      break;
    case Message::Kind::waiting:
      pass_on(relay_.back_to_waiting());
      job_control_.back_to_waiting();
      break;
    case Message::Kind::paused:
      if (job_control_.command_paused(message.number)) pass_on(PassedSignal{SIGCONT});
      break;
    case Message::Kind::ended:
      job_control_.command_ended();
      break;
    case Message::Kind::started:
      proc::claim_cpu_share();
      inherited_.close(keep_fd_);
      break;
    case Message::Kind::notify:
      notify_service_manager(message.text);
      front_end_->send({Message::Kind::notified, 0, {}});
      break;
    case Message::Kind::exited:
      holder_exit_.emplace();
      holder_exit_->exit_code = message.number;
      holder_exit_->report = message.text;
      break;
    case Message::Kind::died:
      holder_exit_.emplace();
      holder_exit_->signal = message.number;
      holder_exit_->report = message.text;
      break;
    case Message::Kind::signal:
    case Message::Kind::handed_over:
    case Message::Kind::notified:
    case Message::Kind::go:
      break;  // only we send these
  }
}

void Front::wait_for_event() {
  const Instant next = std::min(relay_.next_instant(), watchdog_.next_instant());
  if (next != armed_) arm(next);
  std::array<pollfd, 4> ready{pollfd{gate_.fd(), POLLIN, 0}, pollfd{front_end_->fd(), POLLIN, 0},
                              pollfd{timer_.get(), POLLIN, 0}, pollfd{relay_.fd(), POLLIN, 0}};
  if (::poll(ready.data(), ready.size(), -1) < 0 && errno != EINTR) throw_errno("poll");
}

/// Instant::max(): never.
void Front::arm(Instant when) {
  if (!set_boot_timer(timer_.get(), when)) throw_errno("timerfd_settime");
  armed_ = when;
}

}  // namespace redlock::guard
