// How the scripts notice, at a real Redis, that the waiter in front has ended.
#include "../samples.hpp"
#include "core/helper_keys.hpp"
#include "real_redis.hpp"
#include "store/redis/redis_server.hpp"

namespace redlock::redis {
namespace {

using namespace testing;

class GoneWaitersTest : public ::testing::Test {
 protected:
  static constexpr const char* first = "0123abcd.7";

  Milliseconds server_time() {
    const Reply time = redis_({"TIME"});
    return std::chrono::seconds(std::stoll(time.elements.at(0).text)) +
           Milliseconds(std::stoll(time.elements.at(1).text) / 1000);
  }

  /// A waiter is first in the queue that nobody listens for any more. `notified`: when, by the
  /// server's clock; 0: it was not.
  void queue_first(Milliseconds notified) {
    redis_({"ZADD", helper_.queue(), "1", first});
    redis_({"HSET", helper_.waiters(), first,
            "x 0 " + std::to_string((server_time() + 30s).count()) + " " +
                std::to_string(notified.count()) + " 0 {}"});
  }

  /// What one that comes behind it is told.
  AcquireVote come_behind() {
    AcquireRequest wanted{deploy(), token('b'), ttl(), some_owner()};
    wanted.entry = QueueEntry{"me", 2, true, 30s};
    return drive_.run(server_.acquire(wanted, drive_.soon()));
  }

  std::shared_ptr<Connection> subscribe(const Command& command) {
    auto connection = std::make_shared<Connection>(
        drive_.executor(), drive_.clock(),
        make_plain_transport(drive_.executor(), drive_.clock(), redis_.endpoint()),
        std::vector<Command>{});
    connection->on_message([](const Reply*) {});
    connection->start(drive_.soon());
    EXPECT_TRUE(drive_.run(connection->request(command, ReplyLimits{}, drive_.soon())).has_value());
    return connection;
  }

  Drive drive_;
  RealRedis redis_{drive_};
  RedisServer server_{drive_.executor(), drive_.clock(), redis_.endpoint()};
  HelperKeys helper_{deploy()};
};

TEST_F(GoneWaitersTest, AMonitorOfAllChannelsIsNoWaiter) {
  const auto monitor = subscribe({"PSUBSCRIBE", "*"});
  queue_first(0ms);
  EXPECT_TRUE(std::holds_alternative<Granted>(come_behind()));
  EXPECT_EQ(redis_({"ZCARD", helper_.queue()}).integer, 0);
}

TEST_F(GoneWaitersTest, WhoSubscribesIsThereBesideAMonitor) {
  const auto monitor = subscribe({"PSUBSCRIBE", "*"});
  const auto waiter = subscribe({"SUBSCRIBE", helper_.wake(first)});
  queue_first(0ms);
  EXPECT_TRUE(std::holds_alternative<Queued>(come_behind()));
  EXPECT_EQ(redis_({"ZCARD", helper_.queue()}).integer, 2);
}

TEST_F(GoneWaitersTest, WithoutTheRightToPubsubAMonitorCountsAsAWaiter) {
  redis_({"ACL", "SETUSER", "default", "-pubsub"});
  queue_first(0ms);
  EXPECT_TRUE(std::holds_alternative<Granted>(come_behind())) << "PUBLISH counts none";
  drive_.run(server_.release({deploy(), token('b')}, drive_.soon()));
  const auto monitor = subscribe({"PSUBSCRIBE", "*"});
  queue_first(0ms);
  EXPECT_TRUE(std::holds_alternative<Queued>(come_behind()));
}

TEST_F(GoneWaitersTest, DoNotFillABoundedQueueHoweverManyWaitBeforeThem) {
  constexpr std::size_t living = 70;
  redis_({"SET", deploy().key(), "theirs"});
  Command subscribe_all{"SUBSCRIBE"};
  const auto queue = [this](std::size_t ticket) {
    const std::string id = "0123abcd." + std::to_string(ticket);
    redis_({"ZADD", helper_.queue(), std::to_string(ticket), id});
    redis_({"HSET", helper_.waiters(), id,
            "x 0 " + std::to_string((server_time() + 30s).count()) + " 0 0 {}"});
    return id;
  };
  for (std::size_t i = 1; i <= living; ++i) subscribe_all.push_back(helper_.wake(queue(i)));
  for (std::size_t i = 1; i <= 30; ++i) queue(living + i);
  const auto waiters = subscribe(subscribe_all);
  AcquireRequest wanted{deploy(), token('b'), ttl(), some_owner()};
  wanted.entry = QueueEntry{"me", 1000, true, 30s};
  wanted.max_waiting = living + 1;
  const AcquireVote vote = drive_.run(server_.acquire(wanted, drive_.soon()));
  ASSERT_TRUE(std::holds_alternative<Held>(vote));
  EXPECT_EQ(std::get<Held>(vote).queue.others, living);
}

TEST_F(GoneWaitersTest, NoWaiterWasNotifiedInTheFuture) {
  const auto waiter = subscribe({"SUBSCRIBE", helper_.wake(first)});
  queue_first(server_time() + 600s);
  EXPECT_TRUE(std::holds_alternative<Granted>(come_behind()));
}

}  // namespace
}  // namespace redlock::redis
