#include "child/signal_pump.hpp"

#include "support/spawn.hpp"

namespace redlock::child {

SignalPump::SignalPump(asio::any_io_executor executor, SignalGate& gate)
    : executor_(std::move(executor)), gate_(gate), readable_(executor_, gate.fd()) {}

void SignalPump::start(Sink sink) {
  sink_ = std::move(sink);
  spawn(executor_, [self = shared_from_this()]() -> asio::awaitable<void> {
    for (;;) {
      self->deliver_pending();
      co_await self->readable_.wait();
    }
  });
}

void SignalPump::deliver_pending() {
  while (const auto signal = gate_.read()) sink_(*signal);
}

}  // namespace redlock::child
