#include "store/redis/endpoint.hpp"

#include <arpa/inet.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "support/number.hpp"
#include "support/text.hpp"

namespace redlock::redis {
namespace {

using Failure = unexpected<std::string>;

std::optional<int> hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

/// Nothing for `%` without two hexadecimal digits, and for %00, which no address and no login can hold.
std::optional<std::string> percent_decode(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const auto high = hex_digit(text[i + 1]);
    const auto low = hex_digit(text[i + 2]);
    if (!high || !low || (*high == 0 && *low == 0)) return std::nullopt;
    decoded += static_cast<char>(*high * 16 + *low);
    i += 2;
  }
  return decoded;
}

bool is_plain_host(std::string_view host) {
  return !host.empty() && std::all_of(host.begin(), host.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte > ' ' && byte != 0x7f && std::string_view("/?#@\\").find(c) == std::string_view::npos;
  });
}

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; });
}

/// An IPv6 address, with its %zone if it has one, in the one spelling of RFC 5952; nothing for any other text.
std::optional<std::string> canonical_v6(std::string_view text) {
  const std::size_t zone = std::min(text.find('%'), text.size());
  in6_addr address{};
  if (::inet_pton(AF_INET6, std::string(text.substr(0, zone)).c_str(), &address) != 1) return std::nullopt;
  std::array<char, INET6_ADDRSTRLEN> spelled{};
  ::inet_ntop(AF_INET6, &address, spelled.data(), spelled.size());
  return std::string(spelled.data()).append(text.substr(zone));
}

/// Takes `user[:password]@` off the front of `rest`.
std::optional<std::string> take_login(std::string_view& rest, std::string_view authority, Endpoint& endpoint) {
  const std::size_t at = authority.rfind('@');
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view login = authority.substr(0, at);
  rest.remove_prefix(at + 1);
  const std::size_t colon = login.find(':');
  const auto user = percent_decode(login.substr(0, colon));
  if (!user) return "its user is not percent-encoded correctly";
  if (!user->empty()) endpoint.user = *user;
  if (colon == std::string_view::npos) return std::nullopt;
  const auto password = percent_decode(login.substr(colon + 1));
  if (!password) return "its password is not percent-encoded correctly";
  endpoint.password = *password;
  return std::nullopt;
}

std::optional<std::string> read_database(std::string_view text, Endpoint& endpoint) {
  const auto number = whole_number<unsigned>(text);
  if (!number) return "the database must be a number";
  endpoint.database = *number;
  return std::nullopt;
}

/// `host`, `host:port`, `[v6]`, `[v6]:port`.
std::optional<std::string> read_host(std::string_view text, Endpoint& endpoint) {
  std::string_view port;
  bool has_port = false;
  if (text.starts_with('[')) {
    const std::size_t bracket = text.find(']');
    if (bracket == std::string_view::npos) return "the [ of its IPv6 address is not closed";
    const auto address = canonical_v6(text.substr(1, bracket - 1));
    if (!address) return "what stands in its [ ] is no IPv6 address";
    endpoint.host = *address;
    const std::string_view after = text.substr(bracket + 1);
    if (!after.empty() && after[0] != ':') return "after the ] of its IPv6 address only :port may follow";
    has_port = !after.empty();
    port = has_port ? after.substr(1) : after;
  } else {
    const std::size_t colon = text.find(':');
    if (colon != text.rfind(':')) return "an IPv6 address needs brackets: redis://[::1]:6379";
    const auto host = percent_decode(text.substr(0, colon));
    if (!host) return "its host is not percent-encoded correctly";
    endpoint.host = *host;
    has_port = colon != std::string_view::npos;
    if (has_port) port = text.substr(colon + 1);
  }
  if (!is_plain_host(endpoint.host)) return "it names no host";
  std::transform(endpoint.host.begin(), endpoint.host.end(), endpoint.host.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; });
  if (!has_port) return std::nullopt;
  const auto number = whole_number<std::uint16_t>(port);
  if (!number || *number == 0) return "the port must be a number from 1 to 65535";
  endpoint.port = *number;
  return std::nullopt;
}

Result<Endpoint, std::string> parse_tcp(std::string_view rest, bool tls) {
  Endpoint endpoint;
  endpoint.tls = tls;
  // A password may hold a slash that was not encoded; the last @ ends the login in any case.
  const std::size_t at = rest.rfind('@');
  const std::size_t slash = rest.find('/', at == std::string_view::npos ? 0 : at);
  if (auto wrong = take_login(rest, rest.substr(0, slash), endpoint)) return Failure(*wrong);
  const std::size_t path = rest.find('/');
  if (auto wrong = read_host(rest.substr(0, path), endpoint)) return Failure(*wrong);
  if (path == std::string_view::npos || path + 1 == rest.size()) return endpoint;
  if (auto wrong = read_database(rest.substr(path + 1), endpoint)) return Failure(*wrong);
  return endpoint;
}

Result<Endpoint, std::string> parse_unix(std::string_view rest) {
  Endpoint endpoint;
  endpoint.kind = Endpoint::Kind::unix_socket;
  const std::size_t slash = rest.starts_with('/') ? 0 : rest.find("@/");
  if (slash == std::string_view::npos) return Failure("it needs an absolute path: unix:///run/redis/redis.sock");
  if (!rest.starts_with('/')) {
    if (auto wrong = take_login(rest, rest.substr(0, slash + 1), endpoint)) return Failure(*wrong);
  }
  const std::size_t query = rest.find('?');
  const auto path = percent_decode(rest.substr(0, query));
  if (!path || has_control(*path)) return Failure("its path is not percent-encoded correctly, or holds control characters");
  if (path->size() >= sizeof(sockaddr_un::sun_path)) return Failure("its path is too long for a unix socket (107 bytes)");
  endpoint.path = *path;
  if (query == std::string_view::npos) return endpoint;
  const std::string_view parameter = rest.substr(query + 1);
  if (!parameter.starts_with("db=")) return Failure("after ? only db=NUMBER may follow");
  if (auto wrong = read_database(parameter.substr(3), endpoint)) return Failure(*wrong);
  return endpoint;
}

constexpr std::string_view known_forms = "use redis://host:6379, rediss://host:6379, unix:///path/to/redis.sock or local:";

}  // namespace

std::string Endpoint::name() const {
  if (kind == Kind::unix_socket) return "unix://" + path + (database ? "?db=" + std::to_string(database) : "");
  const bool v6 = host.find(':') != std::string::npos;
  return (tls ? "rediss://" : "redis://") + (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port) +
         (database ? "/" + std::to_string(database) : "");
}

Result<Endpoint, std::string> parse_endpoint(std::string_view url) {
  const std::size_t separator = url.find("://");
  const std::string_view scheme = url.substr(0, separator);
  if (separator == std::string_view::npos) return Failure("it has no scheme; " + std::string(known_forms));
  const std::string_view rest = url.substr(separator + 3);
  if (scheme == "redis" || scheme == "rediss") return parse_tcp(rest, scheme == "rediss");
  if (scheme == "unix") return parse_unix(rest);
  // What stands before :// may be a login that belongs behind it.
  if (scheme.find_first_of(":@/") != std::string_view::npos) return Failure("it has no scheme; " + std::string(known_forms));
  return Failure("this version does not know " + escape_for_terminal(scheme) + "://; " + std::string(known_forms));
}

}  // namespace redlock::redis
