#include "commands/servers.hpp"

#include "core/lease_handle.hpp"

namespace redlock::commands {
namespace {

/// For the event loop, its timer and the command's socket.
constexpr std::size_t base_descriptors = 24;

/// A connection and its successor, with the duplicates that are waited on.
constexpr std::size_t descriptors_per_server = 4;

}  // namespace

std::vector<std::string> names_of(const ServerOptions& options) {
  std::vector<std::string> names;
  for (const ServerSource& server : options.servers) names.push_back(server.address->name());
  return names;
}

std::string fingerprint(const ServerOptions& options) {
  return server_set_fingerprint(names_of(options));
}

std::size_t descriptors_of_holder(const ServerOptions& options) {
  return base_descriptors + descriptors_per_server * options.servers.size();
}

}  // namespace redlock::commands
