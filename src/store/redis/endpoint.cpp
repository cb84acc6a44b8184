#include "store/redis/endpoint.hpp"

#include <arpa/inet.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <asio/ip/address.hpp>
#include <charconv>

#include "support/number.hpp"
#include "support/text.hpp"

namespace redlock::redis {
namespace {

using Failure = unexpected<std::string>;

constexpr std::uint16_t redis_port = 6379;
constexpr std::uint16_t sentinel_port = 26379;

/// nullopt for a `%` without two hexadecimal digits, and for %00, which no address and no login can
/// contain.
std::optional<std::string> percent_decode(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const std::string_view digits = text.substr(i + 1, 2);
    const char* const end = digits.data() + digits.size();
    unsigned char byte = 0;
    if (digits.size() < 2 || std::from_chars(digits.data(), end, byte, 16).ptr != end || byte == 0)
      return std::nullopt;
    decoded += static_cast<char>(byte);
    i += 2;
  }
  return decoded;
}

/// The characters of names and addresses, with a zone. Other characters may be a part of a
/// password.
bool is_plain_host(std::string_view host) {
  return !host.empty() && std::all_of(host.begin(), host.end(), [](char c) {
    return is_letter_or_digit(c) || static_cast<unsigned char>(c) >= 0x80 ||
           std::string_view("-._:%").find(c) != std::string_view::npos;
  });
}

/// The part before `://`, in lower case, with `valkey` replaced by `redis`: the protocol is the
/// same.
std::string scheme_of(std::string_view url) {
  std::string scheme = lower_case(url.substr(0, url.find("://")));
  if (scheme == "valkey") return "redis";
  if (scheme == "valkeys") return "rediss";
  return scheme;
}

/// An IPv6 address, with its %zone if it has one, in the canonical spelling of RFC 5952; nullopt
/// for any other text.
std::optional<std::string> canonical_v6(std::string_view text) {
  const std::size_t zone = std::min(text.find('%'), text.size());
  in6_addr address{};
  if (::inet_pton(AF_INET6, std::string(text.substr(0, zone)).c_str(), &address) != 1)
    return std::nullopt;
  std::array<char, INET6_ADDRSTRLEN> spelled{};
  ::inet_ntop(AF_INET6, &address, spelled.data(), spelled.size());
  // In a URL, the sign itself may be encoded (RFC 6874).
  constexpr std::string_view encoded_sign = "%25";
  std::string name(text.substr(zone));
  if (name.starts_with(encoded_sign) && name.size() > encoded_sign.size())
    name.replace(0, encoded_sign.size(), "%");
  return std::string(spelled.data()).append(name);
}

/// Removes `user[:password]@` from the front of `rest`.
std::optional<std::string> take_login(std::string_view& rest, std::string_view authority,
                                      Endpoint& endpoint) {
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
  // An empty one is that of a variable which is not set.
  if (!password->empty()) endpoint.password = *password;
  return std::nullopt;
}

std::optional<std::string> read_database(std::string_view text, Endpoint& endpoint) {
  const auto number = whole_number<unsigned>(text);
  if (!number) return "the database must be a number";
  endpoint.database = *number;
  return std::nullopt;
}

constexpr const char* wrong_separator =
    "servers are separated by commas: redis://10.0.0.1,redis://10.0.0.2";

/// Whether another URL follows in the text, after a blank or a semicolon.
bool holds_another_url(std::string_view rest) {
  for (std::size_t at = rest.find("://"); at != rest.npos; at = rest.find("://", at + 1)) {
    if (at == 0) continue;
    const std::size_t before = rest.find_last_not_of("abcdefghijklmnopqrstuvwxyz", at - 1);
    if (before != rest.npos && std::string_view("; \t\n").find(rest[before]) != rest.npos)
      return true;
  }
  return false;
}

/// Refuses parameters that other clients accept after the address. `rest`: the URL without its
/// login.
std::optional<std::string> refuse_parameters(std::string_view rest) {
  const std::size_t question = rest.find('?');
  if (question == std::string_view::npos) return std::nullopt;
  std::string_view name = rest.substr(question + 1);
  name = name.substr(0, name.find_first_of("=&"));
  const bool plain = !name.empty() && name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_-") ==
                                          std::string_view::npos;
  const std::string unknown = plain ? "unknown parameter '" + std::string(name) + "'"
                                    : std::string("unknown parameter after the ?");
  if (name == "db") return unknown + ": write the database as a path, redis://HOST:PORT/3";
  return unknown + "; use options for that, such as --user and --cacert";
}

/// `host`, `host:port`, `[v6]`, `[v6]:port`. Without a port the address keeps the one that it has.
std::optional<std::string> read_address(std::string_view text, Address& address) {
  std::string_view port;
  bool has_port = false;
  if (text.find(';') != std::string_view::npos) return wrong_separator;
  if (text.starts_with('[')) {
    const std::size_t bracket = text.find(']');
    if (bracket == std::string_view::npos) return "the [ of its IPv6 address is not closed";
    const auto v6 = canonical_v6(text.substr(1, bracket - 1));
    if (!v6) return "what stands in its [ ] is not an IPv6 address";
    address.host = *v6;
    const std::string_view after = text.substr(bracket + 1);
    if (!after.empty() && after[0] != ':')
      return "after the ] of its IPv6 address only :port may follow";
    has_port = !after.empty();
    port = has_port ? after.substr(1) : after;
  } else {
    const std::size_t colon = text.find(':');
    if (colon != text.rfind(':')) return "an IPv6 address needs brackets: redis://[::1]:6379";
    const auto host = percent_decode(text.substr(0, colon));
    if (!host) return "its host is not percent-encoded correctly";
    // The colon before the port is already removed.
    if (host->find(':') != std::string::npos)
      return "its host has a character that no host name has";
    address.host = *host;
    has_port = colon != std::string_view::npos;
    if (has_port) port = text.substr(colon + 1);
  }
  if (address.host.empty()) return "it names no host";
  if (!is_plain_host(address.host)) return "its host has a character that no host name has";
  address.host = lower_case(address.host);
  if (!has_port) return std::nullopt;
  const auto number = whole_number<std::uint16_t>(port);
  if (!number || *number == 0) return "the port must be a number from 1 to 65535";
  address.port = *number;
  return std::nullopt;
}

/// Removes the login of a URL with several hosts from the front of `rest`.
std::optional<std::string> take_login_before_hosts(std::string_view& rest, Endpoint& endpoint) {
  // A password may hold a slash that was not encoded; the last @ ends the login in any case.
  const std::size_t at = rest.rfind('@');
  const std::size_t slash = rest.find('/', at == std::string_view::npos ? 0 : at);
  return take_login(rest, rest.substr(0, slash), endpoint);
}

Result<Endpoint, std::string> parse_tcp(std::string_view rest, bool tls) {
  Endpoint endpoint;
  endpoint.tls = tls;
  if (auto wrong = take_login_before_hosts(rest, endpoint)) return Failure(*wrong);
  if (auto wrong = refuse_parameters(rest)) return Failure(*wrong);
  const std::size_t path = rest.find('/');
  Address address{"", redis_port};
  if (auto wrong = read_address(rest.substr(0, path), address)) return Failure(*wrong);
  endpoint.host = address.host;
  endpoint.port = address.port;
  if (path == std::string_view::npos || path + 1 == rest.size()) return endpoint;
  if (auto wrong = read_database(rest.substr(path + 1), endpoint)) return Failure(*wrong);
  return endpoint;
}

/// `host[:port],host[:port],...`
std::optional<std::string> read_members(std::string_view text, std::uint16_t default_port,
                                        Endpoint& endpoint) {
  for (;;) {
    const std::size_t comma = text.find(',');
    Address address{"", default_port};
    if (auto wrong = read_address(text.substr(0, comma), address)) return wrong;
    if (address.host.find(',') != std::string::npos) return "it names no host";
    endpoint.members.push_back(std::move(address));
    if (comma == std::string_view::npos) return std::nullopt;
    text.remove_prefix(comma + 1);
  }
}

constexpr std::string_view sentinel_parameters = "?sentinel-";

/// Reads `sentinel-user=U&sentinel-password=P`, either of them or both.
std::optional<std::string> read_sentinel_login(std::string_view query, Endpoint& endpoint) {
  while (!query.empty()) {
    std::string_view parameter = next_word(query, '&');
    const std::string_view key = next_word(parameter, '=');
    const auto value = percent_decode(parameter);
    if (!value) return "the login for its sentinels is not percent-encoded correctly";
    if (key == "sentinel-user") {
      endpoint.sentinel_user = *value;
    } else if (key == "sentinel-password") {
      endpoint.sentinel_password = *value;
    } else {
      return "after ? only sentinel-user= and sentinel-password= may follow";
    }
  }
  return std::nullopt;
}

/// Whether Sentinel accepts this name for a master, according to its documentation.
bool is_master_name(std::string_view name) {
  return !name.empty() &&
         name.find_first_not_of(
             "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_") ==
             std::string::npos;
}

Result<Endpoint, std::string> parse_sentinel(std::string_view rest, bool tls) {
  Endpoint endpoint;
  endpoint.kind = Endpoint::Kind::sentinel;
  endpoint.tls = tls;
  if (const std::size_t query = rest.find(sentinel_parameters); query != std::string_view::npos) {
    if (auto wrong = read_sentinel_login(rest.substr(query + 1), endpoint)) return Failure(*wrong);
    rest = rest.substr(0, query);
  }
  if (auto wrong = take_login_before_hosts(rest, endpoint)) return Failure(*wrong);
  if (auto wrong = refuse_parameters(rest)) return Failure(*wrong);
  const std::size_t slash = rest.find('/');
  if (auto wrong = read_members(rest.substr(0, slash), sentinel_port, endpoint))
    return Failure(*wrong);
  std::string_view path =
      slash == std::string_view::npos ? std::string_view() : rest.substr(slash + 1);
  const std::size_t end = path.find('/');
  endpoint.master = path.substr(0, end);
  if (!is_master_name(endpoint.master))
    return Failure(
        "it must name the master (letters, digits, . - _), as the sentinels do: "
        "sentinel://host,host,host/mymaster");
  if (end == std::string_view::npos || end + 1 == path.size()) return endpoint;
  if (auto wrong = read_database(path.substr(end + 1), endpoint)) return Failure(*wrong);
  return endpoint;
}

Result<Endpoint, std::string> parse_cluster(std::string_view rest, bool tls) {
  Endpoint endpoint;
  endpoint.kind = Endpoint::Kind::cluster;
  endpoint.tls = tls;
  if (auto wrong = take_login_before_hosts(rest, endpoint)) return Failure(*wrong);
  if (auto wrong = refuse_parameters(rest)) return Failure(*wrong);
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  if (auto wrong = read_members(rest.substr(0, slash), redis_port, endpoint))
    return Failure(*wrong);
  const std::string_view path = rest.substr(slash);
  if (!path.empty() && path != "/" && path != "/0")
    return Failure("a cluster has database 0 only, so nothing may follow its hosts");
  return endpoint;
}

Result<Endpoint, std::string> parse_unix(std::string_view rest) {
  Endpoint endpoint;
  endpoint.kind = Endpoint::Kind::unix_socket;
  const std::size_t slash = rest.starts_with('/') ? 0 : rest.find("@/");
  if (slash == std::string_view::npos)
    return Failure("it needs an absolute path: unix:///run/redis/redis.sock");
  if (!rest.starts_with('/')) {
    if (auto wrong = take_login(rest, rest.substr(0, slash + 1), endpoint)) return Failure(*wrong);
  }
  const std::size_t query = rest.find('?');
  const auto path = percent_decode(rest.substr(0, query));
  if (!path || std::ranges::any_of(*path, is_control))
    return Failure("its path is not percent-encoded correctly, or holds control characters");
  if (path->size() >= sizeof(sockaddr_un::sun_path))
    return Failure("its path is too long for a unix socket (107 bytes)");
  endpoint.path = *path;
  if (query == std::string_view::npos) return endpoint;
  const std::string_view parameter = rest.substr(query + 1);
  if (!parameter.starts_with("db=")) return Failure("after ? only db=NUMBER may follow");
  if (auto wrong = read_database(parameter.substr(3), endpoint)) return Failure(*wrong);
  return endpoint;
}

constexpr const char* no_scheme = "it begins with no scheme of a Redis server";

/// The addresses in a fixed order: the same addresses are the same vote in any order.
std::string joined(std::vector<Address> addresses) {
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  std::string text;
  for (const Address& address : addresses) text += (text.empty() ? "" : ",") + address.text();
  return text;
}

bool leads_here(const asio::ip::address_v4& address) {
  return address.is_loopback() || address.is_unspecified();
}

}  // namespace

bool is_loopback(std::string_view host) {
  const std::string text(host);
  in_addr v4{};
  // Like lookups, inet_aton() accepts short forms of addresses, such as 127.1.
  if (::inet_aton(text.c_str(), &v4) != 0)
    return leads_here(asio::ip::address_v4(ntohl(v4.s_addr)));
  asio::error_code is_name;
  const auto v6 = asio::ip::make_address_v6(text, is_name);
  if (is_name) return host == "localhost";
  if (v6.is_v4_mapped()) return leads_here(asio::ip::make_address_v4(asio::ip::v4_mapped, v6));
  return v6.is_loopback() || v6.is_unspecified();
}

std::string Address::text() const {
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::string Endpoint::name() const {
  const std::string in_database = database != 0 ? "/" + std::to_string(database) : "";
  switch (kind) {
    case Kind::unix_socket:
      return "unix://" + path + (database != 0 ? "?db=" + std::to_string(database) : "");
    case Kind::sentinel:
      return (tls ? "sentinels://" : "sentinel://") + joined(members) + "/" + master + in_database;
    case Kind::cluster:
      return (tls ? "clusters://" : "cluster://") + joined(members);
    case Kind::tcp:
      break;
  }
  return (tls ? "rediss://" : "redis://") + Address{host, port}.text() + in_database;
}

Endpoint Endpoint::server_at(const Address& address) const {
  Endpoint server;
  server.host = address.host;
  server.port = address.port;
  server.database = database;
  server.user = user;
  server.password = password;
  server.password_file = password_file;
  server.password_is_general = password_is_general;
  server.tls = tls;
  return server;
}

std::optional<std::string> Endpoint::current_password() const {
  return password_file ? std::optional(password_file->password()) : password;
}

bool Endpoint::is_remote() const {
  if (kind == Kind::unix_socket) return false;
  if (kind == Kind::tcp) return !is_loopback(host);
  return !std::ranges::all_of(members, is_loopback, &Address::host);
}

Endpoint Endpoint::sentinel_at(const Address& address) const {
  Endpoint sentinel = server_at(address);
  sentinel.database = 0;
  sentinel.user = sentinel_user;
  sentinel.password = sentinel_password;
  sentinel.password_file = nullptr;
  sentinel.password_is_general = false;
  return sentinel;
}

Result<Endpoint, std::string> parse_endpoint(std::string_view url) {
  const std::size_t separator = url.find("://");
  const std::string scheme = scheme_of(url);
  if (separator == std::string_view::npos) {
    constexpr std::string_view unix = "unix:";
    if (lower_case(url.substr(0, unix.size())) == unix)
      return Failure("a unix socket is written with three slashes: unix:///path/to/redis.sock");
    return Failure(no_scheme);
  }
  const std::string_view rest = url.substr(separator + 3);
  if (holds_another_url(rest)) return Failure(wrong_separator);
  if (scheme == "redis" || scheme == "rediss") return parse_tcp(rest, scheme == "rediss");
  if (scheme == "unix") return parse_unix(rest);
  if (scheme == "sentinel" || scheme == "sentinels")
    return parse_sentinel(rest, scheme == "sentinels");
  if (scheme == "cluster" || scheme == "clusters") return parse_cluster(rest, scheme == "clusters");
  // Not repeated: the text before :// may contain a login.
  return Failure(no_scheme);
}

}  // namespace redlock::redis
