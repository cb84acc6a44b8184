#include "support/clock.hpp"

#include <sys/timerfd.h>

#include <algorithm>
#include <asio/execution_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/prefer.hpp>
#include <asio/query.hpp>
#include <asio/use_awaitable.hpp>
#include <optional>
#include <set>
#include <utility>

#include "support/kernel_calls.hpp"
#include "support/unique_fd.hpp"

namespace redlock {
namespace {

/// How long before the next deadline the timer may expire in vain. Setting it anew costs a system
/// call.
constexpr Milliseconds max_early{100};

/// A waiting coroutine, which is resumed once or destroyed.
class Parked {
 public:
  virtual ~Parked() = default;
  /// Schedules the coroutine on the executor.
  virtual void post() = 0;
};

template <class Handler>
class ParkedHandler final : public Parked {
 public:
  ParkedHandler(const asio::any_io_executor& executor, Handler handler)
      : work_(asio::prefer(executor, asio::execution::outstanding_work.tracked)),
        handler_(std::move(handler)) {}
  void post() override { asio::post(std::move(handler_)); }

 private:
  asio::any_io_executor work_;  ///< keeps the executor's run() from returning
  Handler handler_;
};

class TimerQueue;

class QueuedEvent final : public Event {
 public:
  explicit QueuedEvent(asio::any_io_executor executor);
  ~QueuedEvent() override;
  QueuedEvent(const QueuedEvent&) = delete;
  QueuedEvent& operator=(const QueuedEvent&) = delete;

  void notify() override {
    notified_ = true;
    resume();
  }

  asio::awaitable<bool> wait_until(Instant when) override;

  void resume() {
    if (parked_) leave()->post();
  }

  /// Removes the coroutine from the queue.
  std::unique_ptr<Parked> leave();

 private:
  asio::any_io_executor executor_;
  TimerQueue& queue_;
  Instant until_{};
  std::unique_ptr<Parked> parked_;
  bool notified_ = false;
};

/// All waits of an executor, on one timer: a descriptor per wait would cost seven system calls. As
/// a service of the executor's context, it outlives every wait.
class TimerQueue final : public asio::execution_context::service {
 public:
  inline static asio::execution_context::id id;

  explicit TimerQueue(asio::execution_context& context)
      : asio::execution_context::service(context) {}

  /// Makes sure that the timer expires no later than `when`. Throws std::system_error when no
  /// descriptors are left.
  void arm(const asio::any_io_executor& executor, Instant when) {
    if (!timer_) {
      UniqueFd fd(::timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC));
      if (!fd) throw_errno("timerfd_create");
      timer_.emplace(executor, fd.get());
      (void)fd.release();
    }
    // When a wait has ended early, the timer keeps its earlier time: expiring in vain is cheaper
    // than setting it. If the next deadline is far off, it is set after all, to save the wake-up.
    const Instant next = waits_.empty() ? when : std::min(when, waits_.begin()->first);
    if (when < armed_ || next - armed_ > max_early) set(next);
    if (!listening_) listen();
  }

  void add(Instant when, QueuedEvent* event) { waits_.emplace(when, event); }

  void remove(Instant when, QueuedEvent* event) {
    waits_.erase({when, event});
    // Otherwise the executor's run() would continue for the timer alone.
    if (waits_.empty() && listening_) timer_->cancel();
  }

 private:
  void shutdown() override {
    // Destroying a coroutine may destroy others, and thereby change the queue.
    while (!waits_.empty()) waits_.begin()->second->leave();
    timer_.reset();
  }

  void listen() {
    listening_ = true;
    timer_->async_wait(asio::posix::descriptor_base::wait_read, [this](asio::error_code) {
      listening_ = false;
      expire();
    });
  }

  void expire() {
    const Instant now = BootClock::now();
    if (armed_ <= now) armed_ = Instant::max();
    while (!waits_.empty() && waits_.begin()->first <= now) waits_.begin()->second->resume();
    if (waits_.empty() || waits_.begin()->first == Instant::max()) return;
    if (waits_.begin()->first < armed_) set(waits_.begin()->first);
    if (!listening_) listen();
  }

  void set(Instant when) {
    if (!set_boot_timer(timer_->native_handle(), when)) throw_errno("timerfd_settime");
    armed_ = when;
  }

  std::optional<asio::posix::stream_descriptor> timer_;
  std::set<std::pair<Instant, QueuedEvent*>> waits_;
  Instant armed_ = Instant::max();
  bool listening_ = false;
};

QueuedEvent::QueuedEvent(asio::any_io_executor executor)
    : executor_(std::move(executor)),
      queue_(asio::use_service<TimerQueue>(asio::query(executor_, asio::execution::context))) {}

QueuedEvent::~QueuedEvent() {
  if (parked_) leave();
}

asio::awaitable<bool> QueuedEvent::wait_until(Instant when) {
  while (!notified_ && (when == Instant::max() || BootClock::now() < when)) {
    if (when != Instant::max()) queue_.arm(executor_, when);
    co_await asio::async_initiate<const asio::use_awaitable_t<>, void()>(
        [this, when](auto handler) {
          parked_ =
              std::make_unique<ParkedHandler<decltype(handler)>>(executor_, std::move(handler));
          until_ = when;
          queue_.add(when, this);
        },
        asio::use_awaitable);
  }
  co_return std::exchange(notified_, false);
}

std::unique_ptr<Parked> QueuedEvent::leave() {
  auto parked = std::move(parked_);
  queue_.remove(until_, this);
  return parked;
}

}  // namespace

std::unique_ptr<Event> SystemClock::make_event() const {
  return std::make_unique<QueuedEvent>(executor_);
}

asio::awaitable<void> sleep_until(const Clock& clock, Instant when) {
  const std::unique_ptr<Event> event = clock.make_event();
  co_await event->wait_until(when);
}

}  // namespace redlock
