#include "support/spawn.hpp"

#include <asio/co_spawn.hpp>
#include <exception>
#include <utility>

namespace redlock {

// Not a template: Asio makes some two hundred functions for each type that it starts.
void spawn(const asio::any_io_executor& executor,
           std::function<asio::awaitable<void>()> coroutine) {
  asio::co_spawn(executor, std::move(coroutine), [](const std::exception_ptr& failure) {
    if (failure) std::rethrow_exception(failure);
  });
}

}  // namespace redlock
