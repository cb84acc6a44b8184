#pragma once

#include <asio/any_io_executor.hpp>
#include <functional>
#include <memory>

#include "child/signals.hpp"
#include "support/readable.hpp"

namespace redlock::child {

/// Delivers every signal that a SignalGate collects to one handler of the program, on the executor.
class SignalPump : public std::enable_shared_from_this<SignalPump> {
 public:
  using Sink = std::function<void(const ReceivedSignal&)>;

  /// `gate` must outlive the executor's run().
  SignalPump(asio::any_io_executor executor, SignalGate& gate);

  /// Starts. Runs for as long as the executor runs.
  void start(Sink sink);

  /// Delivers all pending signals at once, for a caller that must know them before it continues.
  void deliver_pending();

 private:
  asio::any_io_executor executor_;
  SignalGate& gate_;
  Readable readable_;
  Sink sink_;
};

}  // namespace redlock::child
