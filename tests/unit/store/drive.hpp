#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "support/clock.hpp"
#include "support/spawn.hpp"

namespace redlock::testing {

using namespace std::chrono_literals;

/// Generous: it only ends what hangs.
constexpr auto timeout = 30s;

/// A directory that goes with the test; short enough for unix sockets.
class Directory {
 public:
  Directory() {
    std::string name = "/tmp/redlock-test-XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  ~Directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// What a coroutine that was started will give.
template <class T>
class Eventual {
 public:
  explicit Eventual(const Clock& clock) : state_(std::make_shared<State>()) {
    state_->done = clock.make_event();
  }

  [[nodiscard]] bool ready() const { return state_->value.has_value(); }

  asio::awaitable<T> get() {
    while (!ready()) co_await state_->done->wait_until(Instant::max());
    co_return std::move(*state_->value);
  }

  void set(T value) {
    state_->value = std::move(value);
    state_->done->notify();
  }

 private:
  struct State {
    std::optional<T> value;
    std::unique_ptr<Event> done;
  };
  std::shared_ptr<State> state_;
};

/// A thread of execution for coroutines under test and for their other side.
class Drive {
 public:
  [[nodiscard]] asio::any_io_executor executor() { return context_.get_executor(); }
  [[nodiscard]] const Clock& clock() const { return clock_; }
  [[nodiscard]] Instant soon() const { return clock_.now() + timeout; }

  /// Runs the coroutine, and whatever else is under way, until it ends.
  template <class T>
  T run(asio::awaitable<T> coroutine) {
    std::optional<T> value;
    spawn(executor(),
          [&]() -> asio::awaitable<void> { value.emplace(co_await std::move(coroutine)); });
    run_until([&] { return value.has_value(); });
    return std::move(*value);
  }

  void run(asio::awaitable<void> coroutine) {
    bool done = false;
    spawn(executor(), [&]() -> asio::awaitable<void> {
      co_await std::move(coroutine);
      done = true;
    });
    run_until([&] { return done; });
  }

  /// Starts the coroutine beside the one that asks for it.
  template <class T>
  Eventual<T> start(asio::awaitable<T> coroutine) {
    Eventual<T> result(clock_);
    const auto shared = std::make_shared<asio::awaitable<T>>(std::move(coroutine));
    spawn(executor(), [result, shared]() mutable -> asio::awaitable<void> {
      result.set(co_await std::move(*shared));
    });
    return result;
  }

  Eventual<bool> start(asio::awaitable<void> coroutine) {
    return start([](asio::awaitable<void> inner) -> asio::awaitable<bool> {
      co_await std::move(inner);
      co_return true;
    }(std::move(coroutine)));
  }

 private:
  template <class Done>
  void run_until(Done done) {
    const auto end = std::chrono::steady_clock::now() + timeout;
    context_.restart();
    while (!done()) {
      if (context_.run_one_until(end) == 0) throw std::runtime_error("the test hangs");
    }
  }

  asio::io_context context_{1};
  SystemClock clock_{context_.get_executor()};
};

}  // namespace redlock::testing
