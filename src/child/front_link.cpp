#include "child/front_link.hpp"

#include <fcntl.h>

#include <asio/redirect_error.hpp>
#include <asio/use_awaitable.hpp>
#include <cerrno>
#include <csignal>
#include <system_error>

#include "support/spawn.hpp"

namespace redlock::child {
namespace {

int duplicate(int fd) {
  const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) throw std::system_error(errno, std::generic_category(), "fcntl");
  return copy;
}

asio::awaitable<void> until_readable(asio::posix::stream_descriptor& descriptor) {
  asio::error_code ignored;
  co_await descriptor.async_wait(asio::posix::descriptor_base::wait_read, asio::redirect_error(asio::use_awaitable, ignored));
}

}  // namespace

FrontLink::FrontLink(asio::any_io_executor executor, const Clock& clock, Channel channel, SignalGate& gate)
    : executor_(std::move(executor)),
      channel_(std::move(channel)),
      gate_(gate),
      channel_readable_(executor_, duplicate(channel_.fd())),
      gate_readable_(executor_, duplicate(gate.fd())),
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
  while (!handed_over_ && !gone_) co_await bell_->wait_until(Instant::max());
  co_return handed_over_;
}

asio::awaitable<void> FrontLink::listen_to_front() {
  while (!gone_) {
    const auto [message, empty] = channel_.receive();
    if (!message && empty == Channel::Empty::nothing_yet) {
      co_await until_readable(channel_readable_);
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
    co_await until_readable(gate_readable_);
  }
}

}  // namespace redlock::child
