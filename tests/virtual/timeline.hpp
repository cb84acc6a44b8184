#pragma once

#include <asio/awaitable.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <compare>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "support/boot_clock.hpp"

namespace redlock::sim {

/// A waiting coroutine, which can be resumed once or destroyed.
class Parked {
 public:
  virtual ~Parked() = default;
  virtual void resume() = 0;
};

class Parking;

/// True time, which no machine can see. It stops while a coroutine can run, then jumps to the next
/// event. Single-threaded: the same events in the same order always have the same result.
class Timeline {
 public:
  /// The executor of all coroutines.
  [[nodiscard]] asio::io_context::executor_type executor() { return io_.get_executor(); }

  /// The time since the beginning of the schedule.
  [[nodiscard]] Duration now() const noexcept { return now_; }

  struct Id {
    Duration when;
    std::uint64_t number;
    friend auto operator<=>(const Id&, const Id&) = default;
  };
  Id at(Duration when, std::function<void()> action);
  Id in(Duration delay, std::function<void()> action) {
    return at(now_ + delay, std::move(action));
  }
  void cancel(const Id& id) { events_.erase(id); }

  /// Runs all ready coroutines, then the next event. -> false: no event is left
  bool step();

  /// Resumes the coroutine in this instant, after those that are ready already.
  void make_ready(std::unique_ptr<Parked> parked) { ready_.push_back(std::move(parked)); }

  /// Keeps a coroutine that is never resumed, and destroys it at the end, because the caller may
  /// still use objects that it owns.
  void bury(std::unique_ptr<Parked> parked) { buried_.push_back(std::move(parked)); }

  /// Forgets all events and destroys every coroutine.
  void clear();

 private:
  friend class Parking;
  void run_ready();

  asio::io_context io_{ASIO_CONCURRENCY_HINT_UNSAFE};
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  Duration now_{};
  std::uint64_t number_ = 0;
  std::map<Id, std::function<void()>> events_;
  std::deque<std::unique_ptr<Parked>> ready_;
  std::vector<std::unique_ptr<Parked>> buried_;
  std::vector<Parking*> parkings_;  ///< that hold a coroutine
};

class Process;

/// One coroutine of a process waits in it until unpark().
class Parking {
 public:
  explicit Parking(Process& process) : process_(process) {}
  ~Parking();
  Parking(const Parking&) = delete;
  Parking& operator=(const Parking&) = delete;

  asio::awaitable<void> park();

  /// Resumes the coroutine as soon as its process runs. Does nothing when none waits.
  void unpark();

 private:
  friend class Timeline;
  std::unique_ptr<Parked> leave();

  Process& process_;
  std::unique_ptr<Parked> parked_;
  std::size_t member_ = 0;  ///< in Timeline::parkings_
};

}  // namespace redlock::sim
