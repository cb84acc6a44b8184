#include "child/front_link.hpp"

#include <unistd.h>

#include <csignal>

#include "support/spawn.hpp"

namespace redlock::child {
namespace {

/// How long after our own signal front may come with its one of the same sweep: it may have to wait
/// for a CPU.
constexpr Milliseconds sweep_memory{100};

}  // namespace

FrontLink::FrontLink(asio::any_io_executor executor, const Clock& clock, Channel channel,
                     SignalGate& gate)
    : executor_(std::move(executor)),
      clock_(clock),
      front_(::getppid()),
      channel_(std::move(channel)),
      gate_(gate),
      channel_readable_(executor_, channel_.fd()),
      gate_readable_(executor_, gate.fd()),
      bell_(clock.make_bell()) {}

void FrontLink::start(Handlers handlers) {
  handlers_ = std::move(handlers);
  spawn(executor_, [self = shared_from_this()] { return self->listen_to_front(); });
  spawn(executor_, [self = shared_from_this()] { return self->listen_to_children(); });
}

asio::awaitable<bool> FrontLink::may_start(Instant patience) {
  ask();
  bool in_time = true;
  while (!answered() && !gone_ && in_time) in_time = co_await bell_->wait_until(patience);
  co_return answered() && !gone_;
}

void FrontLink::ask() {
  ++questions_;
  channel_.send({Message::Kind::granted, questions_, {}});
}

asio::awaitable<void> FrontLink::until_continued() {
  while (!answered() && !gone_) co_await bell_->wait_until(Instant::max());
}

asio::awaitable<bool> FrontLink::until_handed_over() {
  while (!handed_over_ && !gone_ && !given_up_) co_await bell_->wait_until(Instant::max());
  co_return handed_over_;
}

void FrontLink::give_up_hand_over() {
  given_up_ = true;
  bell_->ring();
}

asio::awaitable<void> FrontLink::listen_to_front() {
  while (!gone_) {
    const auto [message, empty] = channel_.receive();
    if (!message && empty == Channel::Empty::nothing_yet) {
      co_await channel_readable_.wait();
    } else if (!message) {
      gone_ = true;
      bell_->ring();
      handlers_.front_gone();
    } else if (message->kind == Message::Kind::signal) {
      handlers_.signal(message->number);
    } else if (message->kind == Message::Kind::handed_over) {
      handed_over_ = true;
      bell_->ring();
    } else if (message->kind == Message::Kind::go) {
      answers_ = message->number;
      bell_->ring();
    }
  }
}

asio::awaitable<void> FrontLink::listen_to_children() {
  for (;;) {
    read_signals();
    co_await gate_readable_.wait();
  }
}

void FrontLink::read_signals() {
  while (const auto signal = gate_.read()) {
    // The rest is front's to act on; we are not to be ended by what was meant for the job.
    if (signal->number == SIGCHLD) {
      handlers_.child();
    } else if (!signal->from_kernel && signal->sender != front_) {
      got_[signal->number] = clock_.now();
    }
  }
}

bool FrontLink::got_ourselves(int signal) {
  read_signals();
  const auto got = got_.find(signal);
  if (got == got_.end()) return false;
  const bool recent = clock_.now() - got->second <= sweep_memory;
  got_.erase(got);
  return recent;
}

void FrontLink::forget_signals() {
  read_signals();
  got_.clear();
}

}  // namespace redlock::child
