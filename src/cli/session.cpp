#include "cli/session.hpp"

#include "store/local/local_server.hpp"
#include "store/redis/redis_server.hpp"
#include "support/random.hpp"

namespace redlock::cli {

Console make_console(const Settings& settings) {
  return Console(settings.flag("quiet"), settings.repeated("verbose"));
}

Session::Session(const Settings& settings, const ServerOptions& options, Duration server_timeout)
    : console_(make_console(settings)), json_(settings.flag("json")) {
  std::vector<std::unique_ptr<LockServer>> servers;
  if (options.local) servers.push_back(std::make_unique<local::LocalServer>(io_.get_executor(), clock_, *options.local));
  for (const redis::Endpoint& endpoint : options.endpoints) {
    servers.push_back(std::make_unique<redis::RedisServer>(io_.get_executor(), clock_, endpoint));
  }
  electorate_ = std::make_unique<Electorate>(io_.get_executor(), clock_, random_bits, std::move(servers), server_timeout);
}

}  // namespace redlock::cli
