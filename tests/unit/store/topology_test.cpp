#include "store/redis/topology.hpp"

#include <gtest/gtest.h>

#include "replies.hpp"

namespace redlock::redis {
namespace {

using namespace testing;

const Address here{"10.0.0.9", 7000};

TEST(Redirect, IsReadFromWhatServersSay) {
  const auto moved = redirect_from("MOVED 3999 127.0.0.1:6381", here);
  ASSERT_TRUE(moved && *moved);
  EXPECT_EQ((*moved)->to, (Address{"127.0.0.1", 6381}));
  EXPECT_FALSE((*moved)->ask);
  const auto ask = redirect_from("ASK 0 ::1:7001", here);  // as Redis writes it: no brackets
  ASSERT_TRUE(ask && *ask);
  EXPECT_EQ((*ask)->to, (Address{"::1", 7001}));
  EXPECT_TRUE((*ask)->ask);
  const auto by_name = redirect_from("MOVED 1 node-1.example:65535", here);
  ASSERT_TRUE(by_name && *by_name);
  EXPECT_EQ((*by_name)->to, (Address{"node-1.example", 65535}));
}

TEST(Redirect, WithoutAHostStaysAtTheHostThatSentUs) {
  const auto moved = redirect_from("MOVED 3999 :6381", here);
  ASSERT_TRUE(moved && *moved);
  EXPECT_EQ((*moved)->to, (Address{"10.0.0.9", 6381}));
}

TEST(Redirect, IsNotEveryError) {
  for (const char* other :
       {"", "MOVED", "MOVEDTO 1 h:1", "ERR MOVED 1 h:1", "ASKING", "TRYAGAIN x", "CLUSTERDOWN x"}) {
    const auto redirect = redirect_from(other, here);
    ASSERT_TRUE(redirect) << other;
    EXPECT_FALSE(*redirect) << other;
  }
}

TEST(Redirect, ThatLeadsNowhereIsAFault) {
  for (const char* bad : {"MOVED 1 h:0", "MOVED 1 :0", "MOVED 1 h:65536", "MOVED 1 h:", "MOVED 1 h",
                          "MOVED 1 ", "ASK 1 h:-1", "ASK 1 h:1x", "MOVED 1 ?:7000",
                          "MOVED h\x1b[2J:0", "MOVED 1 h:99999999999999999999"}) {
    const auto redirect = redirect_from(bad, here);
    ASSERT_FALSE(redirect) << bad;
    EXPECT_EQ(redirect.error().kind, FaultKind::misconfigured);
    EXPECT_EQ(redirect.error().text.find('\x1b'), std::string::npos);
  }
}

TEST(Slots, AreReadFromEveryVersionsAnswer) {
  const Reply meta = array({text("hostname"), text("node-1")});
  const auto slots = slots_from(
      array({array({integer(0), integer(5460),
                    array({text("10.0.0.1"), integer(7001), text("id"), meta}),
                    array({text("10.0.0.2"), integer(7002), text("id"), array({})})}),
             array({integer(5461), integer(16383), array({text("10.0.0.3"), integer(7003)})})}),
      here);
  ASSERT_TRUE(slots);
  ASSERT_EQ(slots->size(), 2U);
  EXPECT_EQ(slots->at(0).first, 0);
  EXPECT_EQ(slots->at(0).last, 5460);
  EXPECT_EQ(slots->at(0).master, (Address{"10.0.0.1", 7001}));
  EXPECT_EQ(slots->at(0).replicas, (std::vector<Address>{{"10.0.0.2", 7002}}));
  EXPECT_EQ(slots->at(1).master, (Address{"10.0.0.3", 7003}));
}

TEST(Slots, OfAServerThatDoesNotKnowItsHostAreAtTheHostThatWasAsked) {
  for (const Reply& host : {Reply{}, text("")}) {
    const auto slots =
        slots_from(array({array({integer(0), integer(1), array({host, integer(7001)})})}), here);
    ASSERT_TRUE(slots && slots->size() == 1);
    EXPECT_EQ(slots->front().master, (Address{"10.0.0.9", 7001}));
  }
}

TEST(Slots, WhoseMasterHasNoAddressHaveNoOwner) {
  for (const Reply& node :
       {array({text("h"), integer(0)}), array({text("h"), text("7001")}), array({})}) {
    const auto slots = slots_from(array({array({integer(0), integer(1), node})}), here);
    ASSERT_TRUE(slots);
    EXPECT_TRUE(slots->empty());
  }
}

TEST(ClusterView, TellsItsEpochIfItMay) {
  EXPECT_EQ(
      epoch_from(text("cluster_state:ok\r\ncluster_current_epoch:7\r\ncluster_my_epoch:3\r\n")),
      7U);
  for (const Reply& other : {text("cluster_state:ok\r\n"), text("cluster_current_epoch:-1\r\n"),
                             text("cluster_current_epoch:x\r\n"), array({}), Reply{}})
    EXPECT_FALSE(epoch_from(other));
}

TEST(ClusterView, CountsTheSlotsWithoutAMaster) {
  EXPECT_EQ((ClusterView{here, {}, 1}.missing_slots()), 16384U);
  EXPECT_EQ((ClusterView{here, {{0, 16383, here, {}}}, 1}.missing_slots()), 0U);
  // A slot that moved stands before the range that it was in.
  EXPECT_EQ((ClusterView{here, {{5, 5, here, {}}, {0, 16000, here, {}}}, 1}.missing_slots()), 383U);
}

TEST(ClusterView, WithTheLargestEpochComesFirstAndThoseWithoutOneLast) {
  const auto froms = [](const std::vector<ClusterView>& views) {
    std::vector<std::uint16_t> ports;
    for (const ClusterView& view : views) ports.push_back(view.from.port);
    return ports;
  };
  using Ports = std::vector<std::uint16_t>;
  const auto view = [](std::uint16_t port, std::optional<std::uint64_t> epoch) {
    return ClusterView{{"10.0.0.9", port}, {}, epoch};
  };
  const auto first = [&](std::vector<ClusterView> views) { return newest_first(std::move(views)); };
  EXPECT_EQ(froms(first({})), Ports());
  const auto all = first({view(1, 5), view(2, 6), view(3, std::nullopt), view(4, 6)});
  EXPECT_EQ(froms(all), (Ports{2, 4, 1, 3}));
  EXPECT_EQ(froms(newest_of(all)), (Ports{2, 4, 3}));
  const auto without = first({view(1, std::nullopt), view(2, std::nullopt)});
  EXPECT_EQ(froms(without), (Ports{1, 2}));
  EXPECT_EQ(froms(newest_of(without)), (Ports{1, 2}));
  EXPECT_EQ(froms(newest_of({})), Ports());
}

TEST(Slots, OfAClusterThatKnowsNoHostNamesSayWhatToSet) {
  const Reply nameless = array({integer(0), integer(1), array({text("?"), integer(7001)})});
  const auto none = slots_from(array({nameless}), here);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().text.find("set cluster-announce-hostname"), std::string::npos);
  const Reply named = array({integer(2), integer(3), array({text("h"), integer(7002)})});
  const auto some = slots_from(array({nameless, named}), here);
  ASSERT_TRUE(some);
  EXPECT_EQ(some->size(), 1U);
  const auto redirect = redirect_from("MOVED 12 ?:7001", here);
  ASSERT_FALSE(redirect);
  EXPECT_NE(redirect.error().text.find("set cluster-announce-hostname"), std::string::npos);
}

TEST(Slots, AreNotReadFromAnythingElse) {
  const Reply node = array({text("h"), integer(1)});
  for (const Reply& bad :
       {Reply{}, integer(1), array({integer(1)}), array({array({integer(0), integer(1)})}),
        array({array({integer(0), integer(16384), node})}),
        array({array({integer(-1), integer(1), node})}),
        array({array({integer(2), integer(1), node})}),
        array({array({text("0"), integer(1), node})})}) {
    const auto slots = slots_from(bad, here);
    ASSERT_FALSE(slots);
    EXPECT_EQ(slots.error().kind, FaultKind::garbage);
  }
}

}  // namespace
}  // namespace redlock::redis
