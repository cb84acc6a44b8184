#include "support/readable.hpp"

#include <fcntl.h>

#include <asio/redirect_error.hpp>
#include <asio/use_awaitable.hpp>

#include "support/kernel_calls.hpp"

namespace redlock {
namespace {

int duplicate(int fd) {
  const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) throw_errno("fcntl");
  return copy;
}

}  // namespace

Readable::Readable(asio::any_io_executor executor, int fd) : descriptor_(executor, duplicate(fd)) {}

asio::awaitable<void> Readable::wait() {
  asio::error_code ignored;  // the caller's read reports the error
  co_await descriptor_.async_wait(asio::posix::descriptor_base::wait_read,
                                  asio::redirect_error(asio::use_awaitable, ignored));
}

}  // namespace redlock
