#pragma once

#include <asio/any_io_executor.hpp>
#include <functional>
#include <memory>

#include "child/signals.hpp"
#include "support/readable.hpp"

namespace redlock::child {

/// Hands every signal that a SignalGate collects to one place of the program, on the executor.
class SignalPump : public std::enable_shared_from_this<SignalPump> {
 public:
  using Sink = std::function<void(const ReceivedSignal&)>;

  /// `gate` must outlive the executor's run().
  SignalPump(asio::any_io_executor executor, SignalGate& gate);

  /// Begins. Goes on for as long as the executor runs.
  void start(Sink sink);

  /// Hands out at once what has come, for a caller that must know it before it goes on.
  void deliver_pending();

 private:
  asio::any_io_executor executor_;
  SignalGate& gate_;
  Readable readable_;
  Sink sink_;
};

}  // namespace redlock::child
