#include "store/redis/resolver.hpp"

#include <atomic>
#include <deque>
#include <future>

#include "fake_server.hpp"
#include "store/redis/transport.hpp"

namespace redlock::redis {
namespace {

using namespace testing;

const asio::ip::address server_ip = own_loopback();

/// A name server that answers when the test says so.
class SlowNames {
 public:
  explicit SlowNames(Resolver& resolver) {
    resolver.replace_find([state = state_](const std::string&) {
      ++state->asked;
      return state->next.get_future().get();
    });
  }
  ~SlowNames() { answer(Found{}); }
  SlowNames(const SlowNames&) = delete;
  SlowNames& operator=(const SlowNames&) = delete;

  /// To the lookup that is under way.
  void answer(Found found) {
    if (!std::exchange(answered_, true)) state_->next.set_value(std::move(found));
  }
  [[nodiscard]] int asked() const { return state_->asked; }

 private:
  struct State {
    std::promise<Found> next;
    std::atomic<int> asked = 0;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
  bool answered_ = false;
};

class ResolverTest : public ::testing::Test {
 protected:
  /// Something that an earlier lookup found.
  void learn(Found found) {
    resolver_.replace_find([found](const std::string&) { return found; });
    drive_.run(resolver_.look_up("redis.example")->wait_until(drive_.clock(), Instant::max()));
  }

  Endpoint endpoint() {
    Endpoint endpoint;
    endpoint.host = "redis.example";
    endpoint.port = server_.address().port;
    return endpoint;
  }

  Eventual<std::optional<Fault>> open(Transport& transport, Duration span) {
    return drive_.start(transport.open(clock_.now() + span));
  }

  Drive drive_;
  ManualClock clock_{drive_.clock()};
  FakeTcpServer server_{drive_};
  Resolver& resolver_ = Resolver::of(drive_.executor());
};

TEST_F(ResolverTest, ALookupGoesOnBeyondItsAttemptAndServesTheNext) {
  SlowNames names(resolver_);
  const auto first = resolver_.look_up("redis.example");
  EXPECT_EQ(drive_.run(first->wait_until(drive_.clock(), drive_.clock().now())), nullptr);
  const auto next = resolver_.look_up("redis.example");
  names.answer({{server_ip}});
  const Found* const found = drive_.run(next->wait_until(drive_.clock(), Instant::max()));
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->addresses, std::vector{server_ip});
  EXPECT_EQ(names.asked(), 1);
  EXPECT_EQ(resolver_.last_known("redis.example"), std::vector{server_ip});
}

TEST_F(ResolverTest, AnErrorLeavesWhatWasFoundBefore) {
  learn({{server_ip}});
  learn({{}, "no name server"});
  EXPECT_EQ(resolver_.last_known("redis.example"), std::vector{server_ip});
}

TEST_F(ResolverTest, ASlowLookupIsWhatTheMessageNames) {
  SlowNames names(resolver_);
  const auto transport = make_plain_transport(drive_.executor(), clock_, endpoint());
  auto opened = open(*transport, 1s);
  drive_.run([](const SlowNames& asked, const Clock& clock) -> asio::awaitable<void> {
    while (asked.asked() == 0) co_await sleep_until(clock, clock.now() + 1ms);
  }(names, drive_.clock()));
  EXPECT_EQ(transport->awaited(), "answer to the name lookup (DNS) of redis.example");
  names.answer({{server_ip}});
  EXPECT_EQ(drive_.run(opened.get()), std::nullopt);
}

TEST_F(ResolverTest, TheLastKnownAddressIsTriedWhileALookupIsSlow) {
  learn({{server_ip}});
  SlowNames names(resolver_);
  const auto transport = make_plain_transport(drive_.executor(), clock_, endpoint());
  auto opened = open(*transport, 3s);
  drive_.run([](const SlowNames& asked, const Clock& clock) -> asio::awaitable<void> {
    while (asked.asked() == 0) co_await sleep_until(clock, clock.now() + 1ms);
  }(names, drive_.clock()));
  EXPECT_FALSE(opened.ready());
  clock_.advance(1s);
  EXPECT_EQ(drive_.run(opened.get()), std::nullopt);
  EXPECT_NE(transport->awaited().find("last known address of redis.example"), std::string::npos);
}

TEST_F(ResolverTest, ALastKnownAddressThatIsSilentLeavesTimeForWhatTheLookupFinds) {
  // Its queue of connections is full.
  asio::ip::tcp::acceptor silent(drive_.executor());
  const asio::ip::tcp::endpoint address(asio::ip::make_address("127.0.0.2"), endpoint().port);
  silent.open(address.protocol());
  silent.bind(address);
  silent.listen(0);
  std::deque<asio::ip::tcp::socket> others;
  for (int i = 0; i < 4; ++i) {
    others.emplace_back(drive_.executor()).async_connect(address, [](asio::error_code) {});
  }

  learn({{address.address()}});
  SlowNames names(resolver_);
  const auto transport = make_plain_transport(drive_.executor(), clock_, endpoint());
  auto opened = open(*transport, 3s);
  const auto awaits = [&](std::string_view what) -> asio::awaitable<void> {
    while (transport->awaited().find(what) == std::string::npos)
      co_await sleep_until(drive_.clock(), drive_.clock().now() + 1ms);
  };
  drive_.run(awaits("name lookup"));
  clock_.advance(1s);
  drive_.run(awaits("last known address"));
  names.answer({{server_ip}});
  EXPECT_FALSE(opened.ready());
  clock_.advance(1s);
  EXPECT_EQ(drive_.run(opened.get()), std::nullopt);
}

TEST_F(ResolverTest, TheLastKnownAddressServesWhenNoNameServerAnswers) {
  learn({{server_ip}});
  resolver_.replace_find([](const std::string&) { return Found{{}, "try again"}; });
  const auto transport = make_plain_transport(drive_.executor(), clock_, endpoint());
  auto opened = open(*transport, 3s);
  EXPECT_EQ(drive_.run(opened.get()), std::nullopt);
}

TEST_F(ResolverTest, ANameThatIsNoMoreLeadsNowhere) {
  learn({{server_ip}});
  resolver_.replace_find([](const std::string&) {
    return Found{{}, "name or service not known", /*may_be_temporary=*/false};
  });
  const auto transport = make_plain_transport(drive_.executor(), clock_, endpoint());
  auto opened = open(*transport, 3s);
  const auto fault = drive_.run(opened.get());
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->text, "cannot look up redis.example: name or service not known");
}

TEST_F(ResolverTest, FindsBothAddressesOfThisHost) {
  const Found found = find_addresses("localhost");
  EXPECT_NE(std::ranges::find(found.addresses, asio::ip::make_address("127.0.0.1")),
            found.addresses.end());
}

}  // namespace
}  // namespace redlock::redis
