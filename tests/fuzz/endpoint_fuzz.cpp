#include "store/redis/endpoint.hpp"

#include <algorithm>

#include "fuzz.hpp"

using namespace redlock;
using namespace redlock::fuzz;
using redlock::redis::Endpoint;
using redlock::redis::parse_endpoint;

namespace {

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](unsigned char c) { return c < ' ' || c == 0x7f; });
}

/// A name is for people, so a path in it is not percent-encoded: behind a space that was, `://`
/// looks like another URL.
bool can_be_read_back(const Endpoint& endpoint) {
  const auto is_readable = [](const std::string& host) {
    return host.find(':') != std::string::npos || host.find('%') == std::string::npos;
  };
  return endpoint.path.find_first_of("%?") == std::string::npos &&
         endpoint.path.find("://") == std::string::npos && is_readable(endpoint.host) &&
         std::all_of(endpoint.members.begin(), endpoint.members.end(),
                     [&](const auto& member) { return is_readable(member.host); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view url = text_of(data, size);
  const auto endpoint = parse_endpoint(url);
  if (!endpoint) {
    check(is_printable_utf8(endpoint.error()));
    return 0;
  }
  const std::string name = endpoint->name();
  check(!has_control(name));
  check(endpoint->port != 0);
  switch (endpoint->kind) {
    case Endpoint::Kind::unix_socket:
      check(endpoint->path.starts_with('/') && endpoint->path.size() < 108);
      break;
    case Endpoint::Kind::tcp:
      check(!endpoint->host.empty());
      break;
    case Endpoint::Kind::sentinel:
    case Endpoint::Kind::cluster:
      check(!endpoint->members.empty());
      check((endpoint->kind == Endpoint::Kind::sentinel) == !endpoint->master.empty());
      for (const auto& member : endpoint->members) check(!member.host.empty() && member.port != 0);
      break;
  }
  if (!can_be_read_back(*endpoint)) return 0;
  const auto again = parse_endpoint(name);
  check(again.has_value());
  check(again->name() == name);
  check(!again->user && !again->password && !again->sentinel_user && !again->sentinel_password);
  check(again->kind == endpoint->kind && again->host == endpoint->host &&
        again->port == endpoint->port && again->path == endpoint->path &&
        again->master == endpoint->master && again->database == endpoint->database);
  return 0;
}
