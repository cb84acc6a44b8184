#include "commands/completion.hpp"

#include <utility>

#include "engine/inspect.hpp"

namespace redlock::commands {
namespace {

/// The time limit for listing keys: a user at the prompt prefers some of the keys now to all of
/// them later.
constexpr Milliseconds max_listing{1500};

asio::awaitable<Listing> list_locked(Session& session, std::string prefix) {
  ListingRequest request;
  request.prefix = std::move(prefix);
  request.until = session.clock().now() + max_listing;
  Listing listing = co_await list_resources(session.server_set(), std::move(request));
  co_await session.server_set().close(CloseMode::immediate);
  co_return listing;
}

}  // namespace

std::vector<std::string> locked_keys(Session& session, std::string prefix) {
  const Listing listing = session.run(list_locked(session, std::move(prefix)));
  std::vector<std::string> keys;
  for (const Resource& resource : listing.resources) keys.push_back(resource.key());
  return keys;
}

}  // namespace redlock::commands
