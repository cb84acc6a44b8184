#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <cstddef>
#include <functional>
#include <limits>

#include "support/clock.hpp"

namespace redlock {

/// Starts a coroutine in the background; no caller waits for it. `coroutine` is kept until what it
/// returned has ended; what it captures must be copyable. An exception that leaves it also leaves
/// the executor's run(); asio::detached would swallow it.
void spawn(const asio::any_io_executor& executor, std::function<asio::awaitable<void>()> coroutine);

/// Runs `coroutine(i)` for each i below `count`, all at the same time, until the last has ended.
/// They begin in this order, none waiting for the one before; of more than `max_at_once`, each of
/// the rest begins when another has ended. What they refer to must live until then.
asio::awaitable<void> run_all(asio::any_io_executor executor, const Clock& clock, std::size_t count,
                              std::function<asio::awaitable<void>(std::size_t)> coroutine,
                              std::size_t max_at_once = std::numeric_limits<std::size_t>::max());

}  // namespace redlock
