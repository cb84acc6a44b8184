#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "store/redis/redis_server.hpp"
#include "store/redis/server_info.hpp"

namespace redlock::redis {
namespace {

/// The value of one setting; nullopt: the server does not tell.
asio::awaitable<std::optional<std::string>> ask_setting(RedisServer& server, std::string name,
                                                        Instant deadline) {
  Command question{"CONFIG", "GET", std::move(name)};
  const auto reply = co_await server.ask(std::move(question), ReplyLimits{}, deadline);
  if (!reply) co_return std::nullopt;
  co_return configured(*reply);
}

}  // namespace

asio::awaitable<std::optional<bool>> RedisVote::persists_nothing(Instant deadline) {
  const auto all = co_await masters(deadline);
  if (!all) co_return std::nullopt;
  bool is_known = true;
  for (const Master& master : *all) {
    const std::shared_ptr<RedisServer> server = master.server();
    const auto append = co_await ask_setting(*server, "appendonly", deadline);
    const auto save = co_await ask_setting(*server, "save", deadline);
    if (append == "no" && save == "") co_return true;
    is_known = is_known && append && save;
  }
  co_return is_known ? std::optional(false) : std::nullopt;
}

}  // namespace redlock::redis
