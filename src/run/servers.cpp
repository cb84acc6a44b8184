#include "run/servers.hpp"

#include "core/lease_handle.hpp"

namespace redlock::run {

std::vector<std::string> names_of(const ServerOptions& options) {
  std::vector<std::string> names;
  for (const ServerSource& server : options.servers) names.push_back(server.address->name());
  return names;
}

std::string fingerprint(const ServerOptions& options) {
  return server_set_fingerprint(names_of(options));
}

}  // namespace redlock::run
