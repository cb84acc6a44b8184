#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <cstddef>
#include <functional>
#include <limits>

#include "support/clock.hpp"

namespace redlock {

/// Starts a coroutine in the background; no caller waits for it. `coroutine` is kept until the
/// awaitable that it returned has ended; its captures must be copyable. An exception that leaves it
/// also leaves the executor's run(), whereas asio::detached would swallow it.
void spawn(const asio::any_io_executor& executor, std::function<asio::awaitable<void>()> coroutine);

/// Runs `coroutine(i)` for each i below `count` concurrently, and returns when all have ended. They
/// start in this order, at most `max_at_once` at a time; each of the rest starts when another one
/// has ended. Everything that they refer to must outlive this call.
asio::awaitable<void> run_all(asio::any_io_executor executor, const Clock& clock, std::size_t count,
                              std::function<asio::awaitable<void>(std::size_t)> coroutine,
                              std::size_t max_at_once = std::numeric_limits<std::size_t>::max());

}  // namespace redlock
