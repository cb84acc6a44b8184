#pragma once

#include <asio/awaitable.hpp>
#include <optional>
#include <vector>

#include "core/fitness.hpp"
#include "engine/electorate.hpp"

namespace redlock {

/// Examines every server, and tries there, each for itself, all that a holder does to a lock. `key`: what to try it with, where rights are
/// limited to some keys; by default a key that nobody else can have, and nothing of it stays behind. Of a given key the fence counter
/// stays, as after any lock.
asio::awaitable<std::vector<Checkup>> check_up(Electorate& electorate, std::optional<Resource> key);

}  // namespace redlock
