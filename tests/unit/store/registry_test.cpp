#include "store/registry.hpp"

#include <gtest/gtest.h>

#include "every_store.hpp"

namespace redlock {
namespace {

using testing::registry;

TEST(Registry, LeadsToTheStoreOfTheScheme) {
  const std::vector<std::pair<std::string, std::pair<const Store*, std::string>>> urls{
      {"redis://h", {&redis::store, "redis://h:6379"}},
      {"VALKEYS://h/2", {&redis::store, "rediss://h:6379/2"}},
      {"unix:///run/s", {&redis::store, "unix:///run/s"}},
      {"sentinels://a,b/m", {&redis::store, "sentinels://a:26379,b:26379/m"}},
      {"cluster://a,b", {&redis::store, "cluster://a:6379,b:6379"}},
      {"local:/srv//locks/", {&local::store, "local:/srv/locks"}},
      {"Local:/srv/locks", {&local::store, "local:/srv/locks"}},
      {"toy:one", {&toy::store, "toy:one"}}};
  for (const auto& [url, meant] : urls) {
    const auto address = registry.read(url);
    ASSERT_TRUE(address.has_value()) << url << ": " << address.error();
    EXPECT_EQ(&(*address)->store(), meant.first) << url;
    EXPECT_EQ((*address)->name(), meant.second) << url;
  }
}

TEST(Registry, NamesTheFormsThatThereAreWhereItKnowsNone) {
  const std::string forms =
      "use redis://host:6379, rediss://host:6379, unix:///path/to/redis.sock, "
      "sentinel://host,host,host/mymaster, cluster://host,host, local:, local:/directory or "
      "toy:NAME";
  EXPECT_EQ(registry.read("cache:6379").error(), "it has no scheme; " + forms);
  EXPECT_EQ(registry.read("redis:cache").error(), "it has no scheme; " + forms);
  EXPECT_EQ(registry.read("alice:hunter2@cache://").error(),
            "it begins with no scheme that this version knows; " + forms);
  EXPECT_EQ(registry.read("redis+sentinel://s1/m").error(),
            "it begins with no scheme that this version knows; write sentinel://");
  EXPECT_EQ(registry.read("hunter2+redis@cache://").error(),
            "it begins with no scheme that this version knows; " + forms);
}

TEST(Registry, LeavesWhatIsWrongWithAUrlToItsStore) {
  EXPECT_EQ(registry.read("redis://").error(), "it names no host");
  EXPECT_EQ(registry.read("local:here").error(), "it needs an absolute path: local:/directory");
}

TEST(Registry, DistinguishesTheHostsOfOneVoteFromServers) {
  EXPECT_TRUE(registry.has_hosts("CLUSTER://a"));
  EXPECT_TRUE(registry.has_hosts("sentinels://a"));
  EXPECT_FALSE(registry.has_hosts("redis://a"));
  EXPECT_FALSE(registry.has_hosts("a"));
  EXPECT_TRUE(registry.begins_url("local:"));
  EXPECT_TRUE(registry.begins_url("unheard-of://a"));
  EXPECT_FALSE(registry.begins_url("b:6379"));
}

TEST(Registry, KnowsWhereALoginMayStand) {
  for (const char* text :
       {"redis://h", "--server=VALKEY://h", "rediss:/h", "clusters://h", "unix:/run"}) {
    EXPECT_TRUE(registry.may_hold_login(text)) << text;
  }
  for (const char* text : {"local:/srv", "toy:/x", "redis", "http://h"}) {
    EXPECT_FALSE(registry.may_hold_login(text)) << text;
  }
}

TEST(Registry, NamesSchemesForMessages) {
  EXPECT_EQ(registry.encrypting_schemes(), "rediss://, sentinels:// or clusters://");
  EXPECT_EQ(registry.example(), "redis://host:6379");
  EXPECT_EQ(registry.stand_alone_hint(),
            "-S local: locks on this host alone, each user apart unless it names a directory");
}

TEST(Registry, TwoDatabasesAreOneProcess) {
  EXPECT_EQ((*registry.read("redis://h/1"))->process(), (*registry.read("redis://h/2"))->process());
  EXPECT_NE((*registry.read("redis://h/1"))->name(), (*registry.read("redis://h/2"))->name());
}

TEST(RedisStore, FillsInTheDefaultLogin) {
  const DefaultLogin login{"alice", "hunter2", /*password_is_general=*/true};
  const redis::Endpoint bare = redis::with_login(redis::parse_endpoint("redis://h").value(), login);
  EXPECT_EQ(bare.user, "alice");
  EXPECT_EQ(bare.password, "hunter2");
  EXPECT_FALSE(bare.password_is_general) << "who names a user wants to be that user";
  const redis::Endpoint own =
      redis::with_login(redis::parse_endpoint("redis://bob:swordfish@h").value(), login);
  EXPECT_EQ(own.user, "bob");
  EXPECT_EQ(own.password, "swordfish");
  EXPECT_TRUE(redis::with_login(bare, {}).password.has_value());
}

}  // namespace
}  // namespace redlock
