#include "commands/session.hpp"

#include <unistd.h>

#include <cerrno>

#include "commands/command_error.hpp"
#include "support/random.hpp"
#include "support/text.hpp"

namespace redlock::commands {

void print_result(std::string_view text) {
  if (!output::write_all(STDOUT_FILENO, text))
    throw CommandError(ExitCode::os_error, "cannot write to stdout: " + errno_text(errno));
}

std::vector<ServerLink> links_to(const SessionOptions& options, const ServerOptions& servers,
                                 Duration server_timeout) {
  LinkOptions link;
  link.server_timeout = server_timeout;
  link.login = servers.login;
  link.replicas = servers.replicas;
  link.identifies_itself = servers.servers.size() > 1 && options.identifies_servers;
  link.needless_password = [console = options.console,
                            reported = std::make_shared<bool>(false)](const std::string& server) {
    if (std::exchange(*reported, true)) return;
    console.notice(escape_for_terminal(server) + " has no password, so REDISCLI_AUTH is not used");
  };
  if (options.tells_unknown_roles) {
    link.unknown_role = [console = options.console,
                         reported = std::make_shared<bool>(false)](const std::string& server) {
      if (std::exchange(*reported, true)) return;
      console.notice("cannot tell whether " + escape_for_terminal(server) +
                     " is a replica, which may show old locks: allow +role or +info");
    };
  }
  std::vector<ServerLink> links;
  for (const ServerSource& server : servers.servers) {
    link.tls = server.tls;
    links.push_back({server.address, link});
  }
  return links;
}

Session::Session(const SessionOptions& options, const ServerOptions& servers,
                 Duration server_timeout)
    : console_(options.console), json_(options.json) {
  std::vector<std::unique_ptr<LockServer>> made;
  for (const ServerLink& link : links_to(options, servers, server_timeout)) {
    made.push_back(link.address->connect(io_->get_executor(), clock_, link.options));
  }
  server_set_ = std::make_unique<ServerSet>(io_->get_executor(), clock_, random_bits,
                                            std::move(made), server_timeout, servers.restart_guard);
  server_set_->on_late_duplicate([console = console_](const std::string& server) {
    console.error(escape_for_terminal(server) +
                  " is the same server as another one, and has no vote of its own; name each "
                  "server once (exit status 78 where this shows before a lock is granted)");
  });
}

}  // namespace redlock::commands
