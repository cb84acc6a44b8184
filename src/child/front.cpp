#include "child/front.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <system_error>

#include "child/descriptors.hpp"

namespace redlock::child {
namespace {

/// How long a signal to the whole group may take to reach its other members.
constexpr Milliseconds group_delivery{10};

/// How long the witness may take to be scheduled. A signal twice is the lesser evil than a signal that waits for ever.
constexpr Milliseconds witness_patience{3000};

/// Between two walks through a tree that does not die at once.
constexpr Milliseconds kill_interval{2};

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

Front::Front(SignalGate& gate, ProcessTree& tree, StopPlan plan, bool shares_group, std::optional<int> keep_fd)
    : gate_(gate),
      tree_(tree),
      plan_(plan),
      keep_fd_(keep_fd),
      page_(make_shared_page()),
      timer_(::timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC)),
      shares_group_(shares_group) {
  if (!timer_) fail("timerfd_create");
  auto [front_end, holder_end] = Channel::make_pair();
  front_end_.emplace(std::move(front_end));
  holder_end_.emplace(std::move(holder_end));
}

bool Front::fork_holder() {
  if (shares_group_) witness_ = std::make_unique<Witness>();
  holder_ = ::fork();
  if (holder_ < 0) fail("fork");
  if (holder_ == 0) {
    front_end_.reset();
    return true;
  }
  holder_end_.reset();
  return false;
}

Verdict Front::guard() {
  while (!verdict_) {
    wait_for_event();
    while (const auto signal = gate_.read()) on_signal(*signal);
    decide_held(BootClock::now());
    for (;;) {
      const auto [message, empty] = front_end_->receive();
      if (message) {
        on_message(*message);
      } else if (empty == Channel::Empty::ended && !verdict_) {
        kill_everything();
        verdict_ = Verdict{unconfirmed_ ? Verdict::Source::unconfirmed : Verdict::Source::holder_died, 0, 0, {}};
      } else {
        break;
      }
    }
    if (!verdict_) watch(BootClock::now());
  }
  return *verdict_;
}

void Front::wait_for_holder() {
  while (!unconfirmed_ && ::waitpid(holder_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Front::dismiss_holder() {
  front_end_.reset();
  wait_for_holder();
}

void Front::on_signal(const ReceivedSignal& signal) {
  if (signal.number == SIGCHLD) return;  // the end of the channel says it
  if (phase_ == Phase::waiting) {
    if (ends_a_wait(signal.number)) pass_on(signal.number);
    return;
  }
  const Instant now = BootClock::now();
  const Instant until = now + group_delivery;
  if (shares_group_) {
    if (!ends_a_wait(signal.number)) return;  // of the kind that shells and terminals send to groups
    // INT and QUIT of the terminal go to its foreground group. Its HUP goes to the leader of the
    // session alone, which may be us, and an alarm or a limit of the kernel's to us alone.
    const bool keyboard = signal.number == SIGINT || signal.number == SIGQUIT;
    const bool delivered = signal.from_kernel && keyboard;
    if (delivered) left_to_command_.insert(signal.number);
    held_.try_emplace(signal.number, Held{delivered, until, 0}).first->second.delivered |= delivered;
    return;
  }
  if (const auto last = passed_on_.find(signal.number); last != passed_on_.end() && now < last->second) return;
  passed_on_[signal.number] = until;
  pass_on(signal.number);
}

void Front::pass_on(int signal) {
  front_end_->send({Message::Kind::signal, signal, {}});
  ::kill(holder_, SIGCONT);  // nobody has waited for it yet; stopped by somebody, it could not even end
}

void Front::stop_like_command(int signal) {
  const pid_t group = page_->stopped_group;
  const pid_t ours = ::getpgrp();
  const UniqueFd terminal(::open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC));
  const bool had_terminal = terminal && group != ours && ::tcgetpgrp(terminal.get()) == group;
  stop_gate_.stop(signal, page_->stopped_group);
  if (group == 0 || group == ours) return;
  // A shell that suspended itself, in a group of its own: `fg` gave the terminal, and CONT, to our group alone.
  if (had_terminal && ::tcgetpgrp(terminal.get()) == ours) ::tcsetpgrp(terminal.get(), group);
  pass_on(SIGCONT);
}

void Front::decide_held(Instant now) {
  if (witness_) witness_->listen();
  for (auto next = held_.begin(); next != held_.end();) {
    auto& [number, held] = *next;
    if (now >= held.until && held.question == 0) {
      held.question = witness_->ask();
      held.until = now + witness_patience;
    }
    const bool answered = held.question != 0 && witness_->answered(held.question);
    if (!answered && now < held.until) {
      ++next;
      continue;
    }
    // Asked even when we know: what the witness saw must not be taken for a later signal.
    const bool witnessed = witness_->saw(number);
    if (!witnessed && !held.delivered) pass_on(number);
    next = held_.erase(next);
  }
}

void Front::on_message(const Message& message) {
  switch (message.kind) {
    case Message::Kind::granted:
      // Every signal up to here is passed on before this, and ends the wait. From here on the command, forked and in its group, gets its
      // own. The witness forgets first: what it saw and we have not read is read now.
      if (witness_) witness_->forget();
      while (const auto signal = gate_.read()) on_signal(*signal);
      if (shares_group_) stop_gate_.close();
      front_end_->send({Message::Kind::go, message.number, {}});
      phase_ = Phase::running;
      left_to_command_.clear();
      break;
    case Message::Kind::waiting:
      phase_ = Phase::waiting;
      // There was no command to get them.
      for (const int number : left_to_command_) pass_on(number);
      stop_gate_.open();
      break;
    case Message::Kind::stopped:
      if (shares_group_) stop_like_command(message.number);
      break;
    case Message::Kind::ended:
      stop_gate_.discard();  // it was for the command, which did not mind
      stop_gate_.open();
      break;
    case Message::Kind::started:
      close_inherited(keep_fd_);
      break;
    case Message::Kind::report:
      verdict_ = Verdict{Verdict::Source::report, std::max(0, message.number), std::max(0, -message.number), message.text};
      break;
    case Message::Kind::signal:
    case Message::Kind::handed_over:
    case Message::Kind::go:
      break;  // ours to send
  }
}

Instant Front::kill_at() const {
  return page_->get_deadline() - plan_.margin / 2;
}

Instant Front::terminate_at() const {
  return page_->get_deadline() - plan_.margin - plan_.grace + plan_.margin / 4;
}

void Front::watch(Instant now) {
  if (page_->get_deadline() == Instant::max() || plan_.on_lost == OnLost::warn) return;
  if (!terminated_ && !page_->stopping.load() && now >= terminate_at()) {
    terminated_ = true;
    page_->stopped_by_front = true;  // before the signal: the holder must know it when it sees what came of it
    std::set<pid_t> guards{holder_};
    if (witness_) guards.insert(witness_->pid());
    tree_.signal(plan_.stop_signal, guards);
  }
  if (plan_.on_lost == OnLost::kill && now >= kill_at()) {
    kill_everything();
    verdict_ = Verdict{unconfirmed_ ? Verdict::Source::unconfirmed : Verdict::Source::holder_hung, 0, 0, {}};
  }
}

void Front::kill_everything() {
  const Instant last = std::max(page_->get_deadline(), BootClock::now() + death_patience);
  ::kill(holder_, SIGKILL);  // nobody has waited for it yet; the tree cannot be seen where there is no /proc
  while (!tree_.kill_and_reap()) {
    unconfirmed_ = BootClock::now() >= last;
    if (unconfirmed_) return;
    const auto pause = std::chrono::duration_cast<std::chrono::nanoseconds>(kill_interval);
    const timespec length{0, static_cast<long>(pause.count())};
    ::nanosleep(&length, nullptr);
  }
}

Instant Front::next_instant() const {
  Instant next = Instant::max();
  for (const auto& [number, held] : held_) next = std::min(next, held.until);
  if (page_->get_deadline() == Instant::max() || plan_.on_lost == OnLost::warn) return next;
  const bool may_terminate = !terminated_ && !page_->stopping.load();
  if (may_terminate) next = std::min(next, terminate_at());
  if (plan_.on_lost == OnLost::kill) next = std::min(next, kill_at());
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
  if (::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &at, nullptr) != 0) fail("timerfd_settime");
  std::array<pollfd, 4> ready{pollfd{gate_.fd(), POLLIN, 0}, pollfd{front_end_->fd(), POLLIN, 0}, pollfd{timer_.get(), POLLIN, 0},
                              pollfd{held_.empty() ? -1 : witness_->fd(), POLLIN, 0}};
  if (::poll(ready.data(), ready.size(), -1) < 0 && errno != EINTR) fail("poll");
}

}  // namespace redlock::child
