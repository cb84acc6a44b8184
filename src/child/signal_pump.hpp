#pragma once

#include <asio/any_io_executor.hpp>
#include <functional>
#include <memory>

#include "child/signals.hpp"
#include "support/readable.hpp"

namespace redlock::child {

/// Hands every signal that a SignalGate collects to whoever is in charge.
class SignalPump : public std::enable_shared_from_this<SignalPump> {
 public:
  using Sink = std::function<void(const ReceivedSignal&)>;

  /// `gate` must outlive the executor's run().
  SignalPump(asio::any_io_executor executor, SignalGate& gate);

  /// Begins; signals go to `sink`.
  void start(Sink sink);

 private:
  asio::any_io_executor executor_;
  SignalGate& gate_;
  Readable readable_;
  Sink sink_;
};

}  // namespace redlock::child
