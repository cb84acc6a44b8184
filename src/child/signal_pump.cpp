#include "child/signal_pump.hpp"

#include <fcntl.h>

#include <asio/redirect_error.hpp>
#include <asio/use_awaitable.hpp>
#include <cerrno>
#include <system_error>

#include "support/spawn.hpp"

namespace redlock::child {
namespace {

int duplicate(int fd) {
  const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) throw std::system_error(errno, std::generic_category(), "fcntl");
  return copy;
}

}  // namespace

SignalPump::SignalPump(asio::any_io_executor executor, SignalGate& gate)
    : executor_(std::move(executor)), gate_(gate), readable_(executor_, duplicate(gate.fd())) {}

void SignalPump::start(Sink sink) {
  sink_ = std::move(sink);
  spawn(executor_, [self = shared_from_this()]() -> asio::awaitable<void> {
    for (;;) {
      while (const auto signal = self->gate_.read()) self->sink_(*signal);
      asio::error_code ignored;
      co_await self->readable_.async_wait(asio::posix::descriptor_base::wait_read, asio::redirect_error(asio::use_awaitable, ignored));
    }
  });
}

}  // namespace redlock::child
