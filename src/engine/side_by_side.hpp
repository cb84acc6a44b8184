#pragma once

#include <asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/server_set.hpp"
#include "support/spawn.hpp"

namespace redlock {

/// Begins all of these in their order, none waiting for the one before, so that their first
/// questions reach each server in that order. Returns their results, in the same order, once all
/// have ended.
template <class Value>
asio::awaitable<std::vector<Value>> side_by_side(
    ServerSet& server_set, std::vector<std::function<asio::awaitable<Value>()>> tasks) {
  struct Progress {
    std::vector<std::optional<Value>> results;
    std::size_t open;
    std::unique_ptr<Event> event;
  };
  const auto progress = std::make_shared<Progress>();
  progress->results.resize(tasks.size());
  progress->open = tasks.size();
  progress->event = server_set.clock().make_event();
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    spawn(server_set.executor(),
          [progress, i, task = std::move(tasks[i])]() -> asio::awaitable<void> {
            progress->results[i] = co_await task();
            if (--progress->open == 0) progress->event->notify();
          });
  }
  while (progress->open > 0) co_await progress->event->wait_until(Instant::max());
  std::vector<Value> results;
  for (std::optional<Value>& result : progress->results) results.push_back(std::move(*result));
  co_return results;
}

}  // namespace redlock
