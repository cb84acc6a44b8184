#include "child/front_link.hpp"

#include <csignal>

#include "support/spawn.hpp"

namespace redlock::child {
FrontLink::FrontLink(asio::any_io_executor executor, const Clock& clock, Channel channel, SignalGate& gate)
    : executor_(std::move(executor)),
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
    while (const auto signal = gate_.read()) {
      // The rest is front's to act on; we are not to be ended by what was meant for the job.
      if (signal->number == SIGCHLD) handlers_.child();
    }
    co_await gate_readable_.wait();
  }
}

}  // namespace redlock::child
