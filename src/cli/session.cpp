#include "cli/session.hpp"

#include "cli/options.hpp"

#include "store/local/local_server.hpp"
#include "store/redis/cluster.hpp"
#include "support/random.hpp"
#include "support/text.hpp"

namespace redlock::cli {

Session::Session(const Settings& settings, const ServerOptions& options, Duration server_timeout)
    : console_(make_console(settings)), json_(settings.get(option::json)) {
  redis::RedisServerOptions about{options.tls, options.replicas};
  // Who locks must know that the servers are several, and that none has forgotten what it granted; who extends, that they still are.
  about.introduces_itself = options.endpoints.size() > 1 && (settings.line().command->bit & (takes_lock | for_extend)) != 0;
  about.needless_password = [console = console_, told = std::make_shared<bool>(false)](const std::string& server) {
    if (std::exchange(*told, true)) return;
    console.notice(escape_for_terminal(server) + " has no password, so REDISCLI_AUTH is not used");
  };
  std::vector<std::unique_ptr<LockServer>> servers;
  if (options.local) servers.push_back(std::make_unique<local::LocalServer>(io_->get_executor(), clock_, *options.local));
  for (const redis::Endpoint& endpoint : options.endpoints) {
    servers.push_back(redis::make_server(io_->get_executor(), clock_, endpoint, about));
  }
  electorate_ =
      std::make_unique<Electorate>(io_->get_executor(), clock_, random_bits, std::move(servers), server_timeout, options.restart_guard);
}

}  // namespace redlock::cli
