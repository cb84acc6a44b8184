#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/posix/stream_descriptor.hpp>

namespace redlock {

/// Lets a coroutine wait until a descriptor has something to read (or its other end is gone). Works on a duplicate, so whoever owns the
/// descriptor keeps it, and may close it at any time. One coroutine at a time.
class Readable {
 public:
  /// Throws std::system_error when there are no descriptors left.
  Readable(asio::any_io_executor executor, int fd);

  asio::awaitable<void> wait();

  /// Ends the wait.
  void cancel() { descriptor_.cancel(); }

 private:
  asio::posix::stream_descriptor descriptor_;
};

}  // namespace redlock
