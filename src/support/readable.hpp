#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/posix/stream_descriptor.hpp>

namespace redlock {

/// Lets one coroutine at a time wait until a descriptor is readable or its other end is closed.
/// Works on a duplicate, so the owner keeps the descriptor and may close it at any time.
class Readable {
 public:
  /// Throws std::system_error when no descriptors are left.
  Readable(asio::any_io_executor executor, int fd);

  asio::awaitable<void> wait();

  /// Ends the wait.
  void cancel() { descriptor_.cancel(); }

 private:
  asio::posix::stream_descriptor descriptor_;
};

}  // namespace redlock
