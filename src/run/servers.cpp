#include "run/servers.hpp"

#include "core/lease_handle.hpp"

namespace redlock::run {

std::vector<std::string> names_of(const ServerOptions& options) {
  std::vector<std::string> names;
  if (options.local) names.push_back(options.local->name());
  for (const redis::Endpoint& endpoint : options.endpoints) names.push_back(endpoint.name());
  return names;
}

std::string fingerprint(const ServerOptions& options) {
  return server_set_fingerprint(names_of(options));
}

}  // namespace redlock::run
