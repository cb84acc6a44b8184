#include "support/clock.hpp"

#include <sys/timerfd.h>

#include <asio/posix/stream_descriptor.hpp>
#include <asio/redirect_error.hpp>
#include <asio/use_awaitable.hpp>
#include <cerrno>
#include <system_error>

namespace redlock {
namespace {

class TimerfdEvent final : public Event {
 public:
  explicit TimerfdEvent(asio::any_io_executor executor) : timer_(std::move(executor)) {}

  void notify() override {
    rung_ = true;
    if (timer_.is_open()) timer_.cancel();
  }

  asio::awaitable<bool> wait_until(Instant when) override {
    while (!rung_ && (when == Instant::max() || BootClock::now() < when)) {
      arm(when);
      asio::error_code ignored;  // cancelled by notify(), or expired: the loop condition tells
      co_await timer_.async_wait(asio::posix::descriptor_base::wait_read,
                                 asio::redirect_error(asio::use_awaitable, ignored));
    }
    co_return std::exchange(rung_, false);
  }

 private:
  void arm(Instant when) {
    if (!timer_.is_open()) {
      int fd = ::timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
      if (fd < 0) throw std::system_error(errno, std::generic_category(), "timerfd_create");
      timer_.assign(fd);
    }
    itimerspec at{};  // all zero: disarmed, for a wait without a limit
    if (when != Instant::max()) {
      const auto since_boot = when.time_since_epoch();
      const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since_boot);
      at.it_value.tv_sec = seconds.count();
      at.it_value.tv_nsec = (since_boot - seconds).count();
    }
    if (::timerfd_settime(timer_.native_handle(), TFD_TIMER_ABSTIME, &at, nullptr) != 0) {
      throw std::system_error(errno, std::generic_category(), "timerfd_settime");
    }
  }

  asio::posix::stream_descriptor timer_;
  bool rung_ = false;
};

}  // namespace

std::unique_ptr<Event> SystemClock::make_event() const {
  return std::make_unique<TimerfdEvent>(executor_);
}

asio::awaitable<void> sleep_until(const Clock& clock, Instant when) {
  const std::unique_ptr<Event> event = clock.make_event();
  co_await event->wait_until(when);
}

}  // namespace redlock
