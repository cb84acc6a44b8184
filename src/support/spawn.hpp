#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <functional>

namespace redlock {

/// Starts a coroutine in the background; no caller waits for it. `coroutine` is kept until what it
/// returned has ended; what it captures must be copyable. An exception that leaves it also leaves
/// the executor's run(); asio::detached would swallow it.
void spawn(const asio::any_io_executor& executor, std::function<asio::awaitable<void>()> coroutine);

}  // namespace redlock
