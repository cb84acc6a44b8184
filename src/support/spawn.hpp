#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/co_spawn.hpp>
#include <exception>
#include <utility>

namespace redlock {

/// Starts a coroutine in the background; no caller waits for it. An exception that leaves it also
/// leaves the executor's run(); asio::detached would swallow it.
template <class Coroutine>
void spawn(const asio::any_io_executor& executor, Coroutine coroutine) {
  asio::co_spawn(executor, std::move(coroutine), [](const std::exception_ptr& failure) {
    if (failure) std::rethrow_exception(failure);
  });
}

}  // namespace redlock
