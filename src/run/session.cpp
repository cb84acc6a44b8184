#include "run/session.hpp"

#include "store/local/local_server.hpp"
#include "store/redis/cluster.hpp"
#include "support/random.hpp"
#include "support/text.hpp"

namespace redlock::run {

Session::Session(const SessionOptions& options, const ServerOptions& servers, Duration server_timeout)
    : console_(options.console), json_(options.json) {
  redis::RedisServerOptions about{servers.tls, servers.replicas};
  about.introduces_itself = servers.endpoints.size() > 1 && options.identifies_servers;
  about.needless_password = [console = console_, told = std::make_shared<bool>(false)](const std::string& server) {
    if (std::exchange(*told, true)) return;
    console.notice(escape_for_terminal(server) + " has no password, so REDISCLI_AUTH is not used");
  };
  std::vector<std::unique_ptr<LockServer>> made;
  if (servers.local) made.push_back(std::make_unique<local::LocalServer>(io_->get_executor(), clock_, *servers.local));
  for (const redis::Endpoint& endpoint : servers.endpoints) {
    made.push_back(redis::make_server(io_->get_executor(), clock_, endpoint, about));
  }
  electorate_ =
      std::make_unique<Electorate>(io_->get_executor(), clock_, random_bits, std::move(made), server_timeout, servers.restart_guard);
}

}  // namespace redlock::run
