#include "store/redis/endpoint.hpp"

#include <gtest/gtest.h>

#include <ostream>
#include <vector>

namespace redlock::redis {

bool operator==(const Endpoint& a, const Endpoint& b) {
  return a.kind == b.kind && a.host == b.host && a.port == b.port && a.path == b.path &&
         a.members == b.members && a.master == b.master && a.database == b.database &&
         a.user == b.user && a.password == b.password && a.sentinel_user == b.sentinel_user &&
         a.sentinel_password == b.sentinel_password && a.tls == b.tls;
}

void PrintTo(const Endpoint& endpoint, std::ostream* out) {
  *out << endpoint.name() << " user " << endpoint.user.value_or("-") << " password "
       << endpoint.password.value_or("-");
}

namespace {

constexpr std::string_view secret = "hunter2";

Endpoint tcp(std::string host, std::uint16_t port = 6379, unsigned database = 0) {
  Endpoint endpoint;
  endpoint.host = std::move(host);
  endpoint.port = port;
  endpoint.database = database;
  return endpoint;
}

Endpoint tls(Endpoint endpoint) {
  endpoint.tls = true;
  return endpoint;
}

Endpoint unix_socket(std::string path, unsigned database = 0) {
  Endpoint endpoint;
  endpoint.kind = Endpoint::Kind::unix_socket;
  endpoint.path = std::move(path);
  endpoint.database = database;
  return endpoint;
}

Endpoint sentinel(std::vector<Address> members, std::string master, unsigned database = 0) {
  Endpoint endpoint;
  endpoint.kind = Endpoint::Kind::sentinel;
  endpoint.members = std::move(members);
  endpoint.master = std::move(master);
  endpoint.database = database;
  return endpoint;
}

Endpoint cluster(std::vector<Address> members) {
  Endpoint endpoint;
  endpoint.kind = Endpoint::Kind::cluster;
  endpoint.members = std::move(members);
  return endpoint;
}

Endpoint with_sentinel_login(Endpoint endpoint, std::optional<std::string> user,
                             std::optional<std::string> password) {
  endpoint.sentinel_user = std::move(user);
  endpoint.sentinel_password = std::move(password);
  return endpoint;
}

Endpoint with_login(Endpoint endpoint, std::optional<std::string> user,
                    std::optional<std::string> password) {
  endpoint.user = std::move(user);
  endpoint.password = std::move(password);
  return endpoint;
}

struct Good {
  std::string url;
  Endpoint endpoint;
  std::string name;
};

const std::vector<Good>& good_urls() {
  static const std::vector<Good> rows{
      {"redis://cache", tcp("cache"), "redis://cache:6379"},
      {"redis://cache/", tcp("cache"), "redis://cache:6379"},
      {"redis://cache:1", tcp("cache", 1), "redis://cache:1"},
      {"redis://cache:65535", tcp("cache", 65535), "redis://cache:65535"},
      {"redis://cache:06380", tcp("cache", 6380), "redis://cache:6380"},
      {"redis://Cache.Example.ORG:6380/", tcp("cache.example.org", 6380),
       "redis://cache.example.org:6380"},
      {"redis://10.0.0.1:6379/2", tcp("10.0.0.1", 6379, 2), "redis://10.0.0.1:6379/2"},
      {"redis://cache/0", tcp("cache"), "redis://cache:6379"},
      {"rediss://cache", tls(tcp("cache")), "rediss://cache:6379"},
      {"rediss://[::1]:6390/3", tls(tcp("::1", 6390, 3)), "rediss://[::1]:6390/3"},
      {"rediss://alice:" + std::string(secret) + "@cache",
       with_login(tls(tcp("cache")), "alice", std::string(secret)), "rediss://cache:6379"},
      {"redis://cache/00", tcp("cache"), "redis://cache:6379"},
      {"redis://c%61che", tcp("cache"), "redis://cache:6379"},
      // IPv6
      {"redis://[::1]", tcp("::1"), "redis://[::1]:6379"},
      {"redis://[::1]:6380/3", tcp("::1", 6380, 3), "redis://[::1]:6380/3"},
      {"redis://[0:0:0:0:0:0:0:1]", tcp("::1"), "redis://[::1]:6379"},
      {"redis://[2001:DB8::00A]", tcp("2001:db8::a"), "redis://[2001:db8::a]:6379"},
      {"redis://[fe80::1%eth0]:6379", tcp("fe80::1%eth0"), "redis://[fe80::1%eth0]:6379"},
      {"redis://[fe80::1%25eth0]:6379", tcp("fe80::1%eth0"), "redis://[fe80::1%eth0]:6379"},
      {"redis://:@cache", tcp("cache"), "redis://cache:6379"},
      // logins
      {"redis://@cache", tcp("cache"), "redis://cache:6379"},
      {"redis://alice@cache", with_login(tcp("cache"), "alice", std::nullopt),
       "redis://cache:6379"},
      {"redis://:hunter2@cache", with_login(tcp("cache"), std::nullopt, "hunter2"),
       "redis://cache:6379"},
      {"redis://alice:hunter2@cache:6380/1", with_login(tcp("cache", 6380, 1), "alice", "hunter2"),
       "redis://cache:6380/1"},
      {"redis://alice:hunter2@[::1]", with_login(tcp("::1"), "alice", "hunter2"),
       "redis://[::1]:6379"},
      {"redis://al%3Aice:hunter2%40%2f%25@cache", with_login(tcp("cache"), "al:ice", "hunter2@/%"),
       "redis://cache:6379"},
      {"redis://alice:hunter2:x@cache", with_login(tcp("cache"), "alice", "hunter2:x"),
       "redis://cache:6379"},
      {"redis://alice:hunter2@x@cache", with_login(tcp("cache"), "alice", "hunter2@x"),
       "redis://cache:6379"},
      {"redis://alice:hunter2/x@cache/4", with_login(tcp("cache", 6379, 4), "alice", "hunter2/x"),
       "redis://cache:6379/4"},
      // An empty password is that of a variable that is not set: there is none.
      {"redis://alice:@cache", with_login(tcp("cache"), "alice", std::nullopt),
       "redis://cache:6379"},
      // unix sockets
      {"unix:///run/redis.sock", unix_socket("/run/redis.sock"), "unix:///run/redis.sock"},
      {"unix:///run/redis.sock?db=7", unix_socket("/run/redis.sock", 7),
       "unix:///run/redis.sock?db=7"},
      {"unix:///run/redis.sock?db=0", unix_socket("/run/redis.sock"), "unix:///run/redis.sock"},
      {"unix:///run/my%20redis.sock", unix_socket("/run/my redis.sock"),
       "unix:///run/my redis.sock"},
      {"unix:///run/a@b.sock", unix_socket("/run/a@b.sock"), "unix:///run/a@b.sock"},
      {"unix://:hunter2@/run/redis.sock?db=1",
       with_login(unix_socket("/run/redis.sock", 1), std::nullopt, "hunter2"),
       "unix:///run/redis.sock?db=1"},
      {"unix://@/run/redis.sock", unix_socket("/run/redis.sock"), "unix:///run/redis.sock"},
      {"unix://alice@/run/redis.sock",
       with_login(unix_socket("/run/redis.sock"), "alice", std::nullopt), "unix:///run/redis.sock"},
      {"unix://alice:hunter2@/run/redis.sock",
       with_login(unix_socket("/run/redis.sock"), "alice", "hunter2"), "unix:///run/redis.sock"},
      {"unix:///" + std::string(106, 'x'), unix_socket("/" + std::string(106, 'x')),
       "unix:///" + std::string(106, 'x')},
      // sentinels, in the name in one order
      {"sentinel://s1/mymaster", sentinel({{"s1", 26379}}, "mymaster"),
       "sentinel://s1:26379/mymaster"},
      {"sentinel://s1,s2:26380,[::1]:1/my-master_1.x/2",
       sentinel({{"s1", 26379}, {"s2", 26380}, {"::1", 1}}, "my-master_1.x", 2),
       "sentinel://[::1]:1,s1:26379,s2:26380/my-master_1.x/2"},
      {"sentinel://s2,s1/m/", sentinel({{"s2", 26379}, {"s1", 26379}}, "m"),
       "sentinel://s1:26379,s2:26379/m"},
      {"sentinels://alice:hunter2@s1,s2/m",
       with_login(tls(sentinel({{"s1", 26379}, {"s2", 26379}}, "m")), "alice", "hunter2"),
       "sentinels://s1:26379,s2:26379/m"},
      {"sentinel://:hunter2@s1/m?sentinel-password=hunter2%26",
       with_sentinel_login(with_login(sentinel({{"s1", 26379}}, "m"), std::nullopt, "hunter2"),
                           std::nullopt, "hunter2&"),
       "sentinel://s1:26379/m"},
      {"sentinel://s1/m/3?sentinel-user=alice&sentinel-password=hunt@er2/",
       with_sentinel_login(sentinel({{"s1", 26379}}, "m", 3), "alice", "hunt@er2/"),
       "sentinel://s1:26379/m/3"},
      // clusters
      {"cluster://c1", cluster({{"c1", 6379}}), "cluster://c1:6379"},
      {"cluster://c2:7001,C1,c1:6379/", cluster({{"c2", 7001}, {"c1", 6379}, {"c1", 6379}}),
       "cluster://c1:6379,c2:7001"},
      {"clusters://alice:hunter2@[::1]:7000,c1/0",
       with_login(tls(cluster({{"::1", 7000}, {"c1", 6379}})), "alice", "hunter2"),
       "clusters://[::1]:7000,c1:6379"},
  };
  return rows;
}

TEST(Endpoint, IsReadFromEveryGoodForm) {
  for (const Good& row : good_urls()) {
    const auto endpoint = parse_endpoint(row.url);
    if (!endpoint) {
      ADD_FAILURE() << row.url << ": " << endpoint.error();
      continue;
    }
    EXPECT_EQ(*endpoint, row.endpoint) << row.url;
    EXPECT_EQ(endpoint->name(), row.name);
  }
}

TEST(Endpoint, IsReadFromItsOwnName) {
  for (const Good& row : good_urls()) {
    if (row.name.find(' ') != std::string::npos)
      continue;  // a name is for people, so it is not percent-encoded
    const auto endpoint = parse_endpoint(row.name);
    if (!endpoint) {
      ADD_FAILURE() << row.name << ": " << endpoint.error();
      continue;
    }
    Endpoint without_logins = with_sentinel_login(
        with_login(row.endpoint, std::nullopt, std::nullopt), std::nullopt, std::nullopt);
    // What the name orders, it orders for the reader too.
    without_logins.members = endpoint->members;
    EXPECT_EQ(*endpoint, without_logins) << row.name;
    EXPECT_EQ(endpoint->name(), row.name);
  }
}

TEST(Endpoint, DoesNotShowTheLoginInItsName) {
  for (const Good& row : good_urls()) {
    const std::string name = parse_endpoint(row.url)->name();
    EXPECT_EQ(name.find("alice"), std::string::npos) << name;
    EXPECT_EQ(name.find(secret), std::string::npos) << name;
  }
}

struct Bad {
  std::string url;
  std::string complaint;  ///< a part of the error
};

const std::vector<Bad>& bad_urls() {
  static const std::vector<Bad> rows{
      {"", "no scheme"},
      {"cache", "no scheme"},
      {"cache:6379", "no scheme"},
      {"redis:cache", "no scheme"},
      {"redis:/cache", "no scheme"},
      {"hunter2@cache", "no scheme"},
      {"alice:hunter2@cache://", "no scheme"},
      {"://cache", "no scheme"},
      {"http://:hunter2@cache", "no scheme of a Redis server"},
      {"redisss://:hunter2@cache", "no scheme"},
      {"re\x1b[dis://:hunter2@cache", "no scheme"},
      // hosts
      {"redis://", "no host"},
      {"redis:///1", "no host"},
      {"redis://:6379", "no host"},
      {"redis://alice:hunter2@", "no host"},
      {"redis://alice:hunter2@:6379", "no host"},
      {"redis://alice:hunter2@/1", "no host"},
      {"redis://:hunter2@ca che", "no host"},
      {"redis://:hunter2@cache\n", "no host"},
      {"redis://:hunter2@ca\x1b[31mche", "no host"},
      {"redis://:hunter2@ca\x7f", "no host"},
      {"redis://:hunter2@ca%0ache", "no host"},
      {"redis://:hunter2@ca%2fche", "no host"},
      {"redis://:hunter2@ca%3Ache", "no host"},
      {"redis://:hunter2@cache?x=1", "unknown parameter 'x'"},
      {"redis://:hunter2@cache?ssl_cert_reqs=none", "unknown parameter 'ssl_cert_reqs'"},
      {"redis://:hunter2@a;b", "separated by commas"},
      {"redis://:hunter2@a redis://:hunter2@b", "separated by commas"},
      {"redis://:hunter2@a;redis://:hunter2@b", "separated by commas"},
      {"redis://:hunter2@cache#x", "no host"},
      {"redis://:hunter2@c%", "host is not percent-encoded"},
      {"redis://:hunter2@c%6", "host is not percent-encoded"},
      {"redis://:hunter2@c%6x", "host is not percent-encoded"},
      {"redis://:hunter2@c%00", "host is not percent-encoded"},
      {"redis://:hunter2@::1", "needs brackets"},
      {"redis://:hunter2@::1:6379", "needs brackets"},
      {"redis://:hunter2@[::1", "not closed"},
      {"redis://:hunter2@[::1]6379", "only :port"},
      {"redis://:hunter2@[]", "not an IPv6 address"},
      {"redis://:hunter2@[cache]", "not an IPv6 address"},
      {"redis://:hunter2@[127.0.0.1]", "not an IPv6 address"},
      {"redis://:hunter2@[::1::]", "not an IPv6 address"},
      {"redis://:hunter2@[fe80::1%e\n]", "no host"},
      // ports
      {"redis://:hunter2@cache:", "port must be"},
      {"redis://:hunter2@cache:/1", "port must be"},
      {"redis://:hunter2@cache:0", "port must be"},
      {"redis://:hunter2@cache:65536", "port must be"},
      {"redis://:hunter2@cache:99999999999999999999", "port must be"},
      {"redis://:hunter2@cache:-1", "port must be"},
      {"redis://:hunter2@cache:+1", "port must be"},
      {"redis://:hunter2@cache: 6379", "port must be"},
      {"redis://:hunter2@cache:6379\n", "port must be"},
      {"redis://:hunter2@cache:redis", "port must be"},
      {"redis://:hunter2@[::1]:", "port must be"},
      // databases
      {"redis://:hunter2@cache/x", "database must be"},
      {"redis://:hunter2@cache/-1", "database must be"},
      {"redis://:hunter2@cache/1/", "database must be"},
      {"redis://:hunter2@cache/1?protocol=3", "unknown parameter 'protocol'"},
      {"redis://:hunter2@cache/4294967296", "database must be"},
      {"unix://:hunter2@/run/r.sock?db=", "database must be"},
      {"unix://:hunter2@/run/r.sock?db=x", "database must be"},
      {"unix://:hunter2@/run/r.sock?db=1&db=2", "database must be"},
      // logins
      {"redis://al%ice:hunter2@cache", "user is not percent-encoded"},
      {"redis://al%00ice:hunter2@cache", "user is not percent-encoded"},
      {"redis://alice:hunter2%@cache", "password is not percent-encoded"},
      {"redis://alice:hunter2%zz@cache", "password is not percent-encoded"},
      {"redis://alice:hunter2%00@cache", "password is not percent-encoded"},
      {"unix://alice:hunter2%@/run/r.sock", "password is not percent-encoded"},
      // sentinels
      {"sentinel://", "no host"},
      {"sentinel:///m", "no host"},
      {"sentinel://:hunter2@s1", "must name the master"},
      {"sentinel://:hunter2@s1/", "must name the master"},
      {"sentinel://:hunter2@s1/m%20m", "must name the master"},
      {"sentinel://:hunter2@s1/m,s2", "must name the master"},
      {"sentinel://:hunter2@s1,/m", "no host"},
      {"sentinel://:hunter2@s1,,s2/m", "no host"},
      {"sentinel://:hunter2@s1%2cs2/m", "no host"},
      {"sentinel://:hunter2@s1:0/m", "port must be"},
      {"sentinel://:hunter2@s1/m/x", "database must be"},
      {"sentinel://s1/m?password=hunter2", "unknown parameter 'password'"},
      {"sentinel://s1/m?sentinel-passwort=hunter2", "only sentinel-user= and sentinel-password="},
      {"sentinel://s1/m?sentinel-password=hunter2&db=2",
       "only sentinel-user= and sentinel-password="},
      {"sentinel://s1/m?sentinel-password=hunter2%",
       "login for its sentinels is not percent-encoded"},
      // clusters
      {"cluster://", "no host"},
      {"cluster:///0", "no host"},
      {"cluster://:hunter2@c1/1", "database 0 only"},
      {"cluster://:hunter2@c1/x", "database 0 only"},
      {"cluster://:hunter2@c1,c2:x", "port must be"},
      // unix sockets
      {"unix://", "absolute path"},
      {"unix://run/r.sock", "absolute path"},
      {"unix://alice:hunter2@run/r.sock", "absolute path"},
      {"unix://:hunter2@/run/r%.sock", "path is not percent-encoded"},
      {"unix://:hunter2@/run/r%00.sock", "path is not percent-encoded"},
      {"unix://:hunter2@/run/r%1b.sock", "control characters"},
      {"unix://:hunter2@/run/r\n.sock", "control characters"},
      {"unix://:hunter2@/run/r.sock?", "only db=NUMBER"},
      {"unix://:hunter2@/run/r.sock?x=1", "only db=NUMBER"},
      {"unix:///" + std::string(107, 'x'), "too long"},
  };
  return rows;
}

TEST(Endpoint, LeadsToTheServersWithTheirOwnLogins) {
  const auto sentinels = parse_endpoint(
      "sentinels://alice:hunter2@s1/m/3?sentinel-user=carol&sentinel-password=swordfish");
  ASSERT_TRUE(sentinels);
  EXPECT_EQ(sentinels->server_at({"10.0.0.1", 6380}),
            with_login(tls(tcp("10.0.0.1", 6380, 3)), "alice", "hunter2"));
  EXPECT_EQ(sentinels->sentinel_at({"s1", 26379}),
            with_login(tls(tcp("s1", 26379)), "carol", "swordfish"));
  const auto cluster = parse_endpoint("cluster://:hunter2@c1");
  ASSERT_TRUE(cluster);
  EXPECT_EQ(cluster->server_at({"::1", 7001}),
            with_login(tcp("::1", 7001), std::nullopt, "hunter2"));
}

TEST(Endpoint, IsRemoteUnlessAllOfItIsOnThisHost) {
  for (const char* const url : {"redis://10.0.0.1", "redis://db.example:7000", "redis://[fe80::1]",
                                "cluster://127.0.0.1,10.0.0.1", "sentinel://10.0.0.1/main"}) {
    EXPECT_TRUE(parse_endpoint(url)->is_remote()) << url;
  }
  for (const char* const url :
       {"redis://localhost", "redis://127.0.0.1:7000", "redis://[::1]", "redis://0.0.0.0",
        "unix:///run/redis.sock", "cluster://127.0.0.1,localhost", "sentinel://localhost/main"}) {
    EXPECT_FALSE(parse_endpoint(url)->is_remote()) << url;
  }
}

TEST(Endpoint, IsNotReadFromAnythingElse) {
  for (const Bad& row : bad_urls()) {
    const auto endpoint = parse_endpoint(row.url);
    if (endpoint) {
      ADD_FAILURE() << row.url << " was read as " << endpoint->name();
      continue;
    }
    EXPECT_NE(endpoint.error().find(row.complaint), std::string::npos)
        << row.url << ": " << endpoint.error();
  }
}

TEST(Endpoint, ComplainsInOnePrintableClauseWithoutThePassword) {
  for (const Bad& row : bad_urls()) {
    const auto endpoint = parse_endpoint(row.url);
    if (endpoint) continue;  // reported above
    EXPECT_EQ(endpoint.error().find(secret), std::string::npos) << endpoint.error();
    for (const char c : endpoint.error()) EXPECT_TRUE(c >= ' ' && c != 0x7f) << endpoint.error();
  }
}

TEST(Endpoint, SpeaksOfValkeyAsOfRedisAndKnowsCapitals) {
  const std::vector<std::pair<std::string, std::string>> same{
      {"valkey://h", "redis://h:6379"},
      {"valkeys://h:1/2", "rediss://h:1/2"},
      {"REDIS://H", "redis://h:6379"},
      {"Sentinel://A,b/m", "sentinel://a:26379,b:26379/m"},
      {"UNIX:///Run/s", "unix:///Run/s"}};
  for (const auto& [url, name] : same) {
    const auto endpoint = parse_endpoint(url);
    ASSERT_TRUE(endpoint.has_value()) << url;
    EXPECT_EQ(endpoint->name(), name);
  }
  EXPECT_NE(parse_endpoint("unix:/run/s").error().find("unix:///"), std::string::npos);
}

TEST(Loopback, IsWhatLeadsToThisHostAndNoNameThatLooksLikeIt) {
  for (const char* host : {"localhost", "127.0.0.1", "127.1", "127.255.0.9", "0.0.0.0", "::1",
                           "::", "::ffff:127.0.0.1"})
    EXPECT_TRUE(is_loopback(host)) << host;
  for (const char* host :
       {"127.example.org", "10.0.0.1", "1.127.0.1", "fe80::1", "::ffff:10.0.0.1", "redis", ""})
    EXPECT_FALSE(is_loopback(host)) << host;
}

}  // namespace
}  // namespace redlock::redis
