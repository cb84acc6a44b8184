#include "support/spawn.hpp"

#include <asio/co_spawn.hpp>
#include <exception>
#include <utility>

namespace redlock {

// Not a template: Asio instantiates some two hundred functions for each type that it starts.
void spawn(const asio::any_io_executor& executor,
           std::function<asio::awaitable<void>()> coroutine) {
  asio::co_spawn(executor, std::move(coroutine), [](const std::exception_ptr& failure) {
    if (failure) std::rethrow_exception(failure);
  });
}

asio::awaitable<void> run_all(asio::any_io_executor executor, const Clock& clock, std::size_t count,
                              std::function<asio::awaitable<void>(std::size_t)> coroutine,
                              std::size_t max_at_once) {
  struct Progress {
    std::unique_ptr<Event> event;
    std::size_t open;
  };
  const auto progress = std::make_shared<Progress>(Progress{clock.make_event(), 0});
  for (std::size_t i = 0; i < count; ++i) {
    while (progress->open == max_at_once) co_await progress->event->wait_until(Instant::max());
    ++progress->open;
    spawn(executor, [progress, coroutine, i]() -> asio::awaitable<void> {
      co_await coroutine(i);
      --progress->open;
      progress->event->notify();
    });
  }
  while (progress->open > 0) co_await progress->event->wait_until(Instant::max());
}

}  // namespace redlock
