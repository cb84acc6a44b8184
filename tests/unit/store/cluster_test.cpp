#include "store/redis/cluster.hpp"

#include "../samples.hpp"
#include "core/helper_keys.hpp"
#include "fake_server.hpp"

namespace redlock::redis {
namespace {

using namespace testing;

constexpr std::string_view released_reply = "*2\r\n$8\r\nreleased\r\n:0\r\n";
constexpr std::string_view try_again =
    "-TRYAGAIN Multiple keys request during rehashing of slot\r\n";

/// These slots are at this server, as one range of CLUSTER SLOTS.
std::string slots_at(std::size_t first, std::size_t last, const Address& address) {
  return "*3\r\n:" + std::to_string(first) + "\r\n:" + std::to_string(last) + "\r\n*2\r\n$" +
         std::to_string(address.host.size()) + "\r\n" + address.host +
         "\r\n:" + std::to_string(address.port) + "\r\n";
}
std::string all_slots_at(const Address& address) {
  return "*1\r\n" + slots_at(0, 16383, address);
}
/// The first half of the slots, without that of "deploy".
constexpr std::string_view other_half =
    "*1\r\n*3\r\n:0\r\n:8000\r\n*2\r\n$9\r\n127.0.0.1\r\n:1\r\n";
/// What CLUSTER INFO answers, as far as it matters.
std::string at_epoch(int epoch) {
  const std::string text = "cluster_state:ok\r\ncluster_current_epoch:" + std::to_string(epoch) +
                           "\r\ncluster_my_epoch:1\r\n";
  return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
}
std::string moved_to(const Address& address) {
  return "-MOVED 1 " + address.text() + "\r\n";
}
std::string ask_at(const Address& address) {
  return "-ASK 1 " + address.text() + "\r\n";
}

/// Whether the position is one of these digits.
bool is_among(std::string_view digits, std::size_t position) {
  return digits.find(std::to_string(position)) != std::string_view::npos;
}

/// Answers the nine questions for the type of a key. `here`: the positions of those that are there;
/// `other`: what is said of the others.
asio::awaitable<void> tell_types(Peer& peer, std::string here, std::string other,
                                 bool asking = false) {
  for (std::size_t i = 0; i < 9; ++i) {
    if (asking) co_await peer.expect(wire("ASKING"));
    const Command question = co_await peer.read_command();
    EXPECT_EQ(question.front(), "TYPE");
    const std::string answer = is_among(here, i) ? "+string\r\n" : other;
    co_await peer.send((asking ? "+OK\r\n" : "") + answer);
  }
}

class ClusterTest : public ::testing::Test {
 protected:
  Endpoint endpoint() {
    Endpoint endpoint;
    endpoint.kind = Endpoint::Kind::cluster;
    endpoint.members = {a_.address(), b_.address()};
    return endpoint;
  }

  /// The first question of all comes to A: who has which slots?
  asio::awaitable<Peer> asked_for_slots(Address owner) {
    Peer peer = co_await a_.accept();
    co_await peer.expect(wire("CLUSTER SLOTS"));
    co_await peer.send(all_slots_at(owner));
    co_return peer;
  }

  static void expect_script(const Command& command, const Script& script, const char* keys) {
    ASSERT_GE(command.size(), 3U);
    EXPECT_EQ(command[0], "EVALSHA");
    EXPECT_EQ(command[1], scripts::sha1);
    EXPECT_EQ(command.back(), script.name);
    EXPECT_EQ(command[2], keys);
    EXPECT_EQ(command[3], "deploy");
  }

  /// A is asked by this script, and has one key left of a slot that moves; of those at B, `there`.
  asio::awaitable<std::pair<Peer, Peer>> asked_on_the_way(const Script& script, const char* there) {
    Peer a = co_await asked_for_slots(a_.address());
    expect_script(co_await a.read_command(), script, "9");
    co_await a.send(std::string(try_again));
    co_await tell_types(a, "1", ask_at(b_.address()));
    Peer b = co_await b_.accept();
    co_await tell_types(b, there, "+none\r\n", /*asking=*/true);
    co_return std::pair(std::move(a), std::move(b));
  }

  asio::awaitable<AcquireVote> acquire() {
    return server_->acquire(AcquireRequest{deploy(), token(), Ttl::from(30s).value(), {}},
                            clock_.now() + 3s);
  }
  asio::awaitable<ReleaseVote> release() {
    return server_->release(ReleaseRequest{deploy(), token(), /*by_hand=*/false, Duration::zero()},
                            clock_.now() + 3s);
  }

  Drive drive_;
  ManualClock clock_{drive_.clock()};
  FakeTcpServer a_{drive_};
  FakeTcpServer b_{drive_};
  std::unique_ptr<ClusterServer> server_ =
      std::make_unique<ClusterServer>(drive_.executor(), clock_, endpoint());
};

TEST_F(ClusterTest, AsksForTheSlotsOnceAndThenTheirMaster) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto first = drive_.start(server_->inspect(deploy(), std::nullopt, clock_.now() + 3s));
    Peer a = co_await asked_for_slots(b_.address());
    Peer b = co_await b_.accept();
    expect_script(co_await b.read_command(), scripts::inspect, "10");
    co_await b.send(std::string(is_free));
    const InspectVote vote = co_await first.get();
    EXPECT_TRUE(std::holds_alternative<Free>(vote));

    auto second = drive_.start(server_->inspect(deploy(), std::nullopt, clock_.now() + 3s));
    EXPECT_EQ((co_await b.read_command()).at(0), "EVALSHA");
    co_await b.send(std::string(is_free));
    co_await second.get();
  }());
}

TEST_F(ClusterTest, FollowsMovedAndUndoesOnlyWhereTheAcquireWasDone) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = drive_.start(acquire());
    Peer a = co_await asked_for_slots(a_.address());
    expect_script(co_await a.read_command(), scripts::acquire, "9");
    co_await a.send(moved_to(b_.address()));
    Peer b = co_await b_.accept();
    expect_script(co_await b.read_command(), scripts::acquire, "9");
    co_await b.send(std::string(granted));
    const AcquireVote answer = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Granted>(answer));

    server_->undo(deploy(), token());
    // And once more for a slot that has begun to move.
    expect_script(co_await b.read_command(), scripts::release, "9");
    const Command undo{"EVAL", std::string(scripts::undo), "1", "deploy", token().secret()};
    EXPECT_EQ(co_await b.read_command(), undo);
    b.close();
    co_await server_->close(clock_.now());
    co_await a.expect_end();
  }());
}

TEST_F(ClusterTest, AShareMayNotBeUndoneWhereTheScriptsWereForgotten) {
  int not_undone = 0;
  drive_.run([&, this]() -> asio::awaitable<void> {
    auto vote = drive_.start(acquire());
    Peer a = co_await asked_for_slots(a_.address());
    expect_script(co_await a.read_command(), scripts::acquire, "9");
    co_await a.send(std::string(granted));
    co_await vote.get();

    server_->undo(deploy(), token(), std::nullopt, [&] { ++not_undone; });
    expect_script(co_await a.read_command(), scripts::release, "9");
    EXPECT_EQ((co_await a.read_command()).at(0), "EVAL");
    // The text of the undo has the lock's key alone, and a share is beside it.
    co_await a.send("-NOSCRIPT No matching script. Please use EVAL.\r\n:1\r\n");
    auto closed = drive_.start(server_->close(Instant::max()));
    co_await a.expect_end();
    a.close();
    co_await closed.get();
  }());
  EXPECT_EQ(not_undone, 1);
}

TEST_F(ClusterTest, AnUndoneAcquireIsNotSentElsewhere) {
  drive_.run([this]() -> asio::awaitable<void> {
    // While the master is looked for.
    auto vote = drive_.start(acquire());
    Peer a = co_await a_.accept();
    co_await a.expect(wire("CLUSTER SLOTS"));
    server_->undo(deploy(), token());
    co_await a.send(all_slots_at(a_.address()));
    const AcquireVote first = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Fault>(first));

    // While a redirect is on its way: only what takes it back follows.
    auto again = drive_.start(acquire());
    expect_script(co_await a.read_command(), scripts::acquire, "9");
    server_->undo(deploy(), token());
    expect_script(co_await a.read_command(), scripts::release, "9");
    co_await a.send(moved_to(b_.address()));
    const AcquireVote second = co_await again.get();
    EXPECT_TRUE(std::holds_alternative<Fault>(second));
  }());
}

TEST_F(ClusterTest, AnAttemptOfAWaiterThatHasLeftIsNotSentElsewhere) {
  drive_.run([this]() -> asio::awaitable<void> {
    AcquireRequest waiting{deploy(), token(), Ttl::from(30s).value(), {}};
    waiting.entry = QueueEntry{"waiter", 1, /*polls=*/false, 30s};
    auto vote = drive_.start(server_->acquire(std::move(waiting), clock_.now() + 3s));
    Peer a = co_await asked_for_slots(a_.address());
    expect_script(co_await a.read_command(), scripts::acquire, "9");
    server_->leave(deploy(), "waiter");
    expect_script(co_await a.read_command(), scripts::leave, "9");
    co_await a.send(moved_to(b_.address()));
    const AcquireVote answer = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Fault>(answer));
  }());
}

TEST_F(ClusterTest, FollowsAskOnceAfterAsking) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = drive_.start(server_->inspect(deploy(), std::nullopt, clock_.now() + 3s));
    Peer a = co_await asked_for_slots(a_.address());
    expect_script(co_await a.read_command(), scripts::inspect, "10");
    co_await a.send(ask_at(b_.address()));
    Peer b = co_await b_.accept();
    co_await b.expect(wire("ASKING"));
    expect_script(co_await b.read_command(), scripts::inspect, "10");
    co_await b.send("+OK\r\n" + std::string(is_free));
    co_await vote.get();

    auto again = drive_.start(server_->inspect(deploy(), std::nullopt, clock_.now() + 3s));
    expect_script(co_await a.read_command(), scripts::inspect, "10");
    co_await a.send(std::string(is_free));
    co_await again.get();
  }());
}

/// The lock's key stands for those that are not there, and comes once more at the end.
void expect_keys(const Command& command, std::string_view here) {
  constexpr std::size_t first = 3;
  ASSERT_GE(command.size(), first + protocol::partial);
  for (std::size_t i = 0; i < protocol::partial; ++i)
    EXPECT_EQ(command[first + i] != "deploy", i > 0 && is_among(here, i)) << i;
}

TEST_F(ClusterTest, PutsAReleaseWithTheKeysThatAreThereToTheSlotsMasterWhenOthersAreOnTheirWay) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = drive_.start(release());
    Peer a = co_await asked_for_slots(a_.address());
    expect_script(co_await a.read_command(), scripts::release, "9");
    co_await a.send(
        ask_at(b_.address()));  // Redis before 7 says so of keys of which some are still here
    Peer b = co_await b_.accept();
    co_await b.expect(wire("ASKING"));
    expect_script(co_await b.read_command(), scripts::release, "9");
    co_await b.send("+OK\r\n" + std::string(try_again));
    // Not here, where the key may not have arrived: that would look like a lease that was lost.
    co_await tell_types(a, "014", ask_at(b_.address()));
    const Command question = co_await a.read_command();
    expect_script(question, scripts::release, "11");
    expect_keys(question, "014");
    co_await a.send(std::string(released_reply));
    const ReleaseVote answer = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Released>(answer));
  }());
}

TEST_F(ClusterTest, PutsAReleaseToWhereTheKeyHasMovedWithTheKeysThatAreThere) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = drive_.start(release());
    auto [a, b] = co_await asked_on_the_way(scripts::release, "04");
    co_await b.expect(wire("ASKING"));
    const Command question = co_await b.read_command();
    expect_script(question, scripts::release, "11");
    expect_keys(question, "04");
    co_await b.send("+OK\r\n" + std::string(released_reply));
    const ReleaseVote answer = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Released>(answer));
  }());
}

TEST_F(ClusterTest, PutsAReleaseForTheKeyAloneWhereTheKeyIsNowhere) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = drive_.start(release());
    auto [a, b] = co_await asked_on_the_way(scripts::release, "");
    expect_script(co_await a.read_command(), scripts::release, "1");
    co_await a.send(ask_at(b_.address()));
    co_await b.expect(wire("ASKING"));
    expect_script(co_await b.read_command(), scripts::release, "1");
    co_await b.send("+OK\r\n*2\r\n$4\r\ngone\r\n:0\r\n");
    const ReleaseVote answer = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<NotOurs>(answer));
  }());
}

TEST_F(ClusterTest, LeavesTheSignOfAReleaseWhereTheTombstonesAre) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = drive_.start(release());
    auto [a, b] = co_await asked_on_the_way(scripts::release, "02");
    co_await b.expect(wire("ASKING"));
    expect_script(co_await b.read_command(), scripts::release, "11");
    co_await b.send("+OK\r\n*3\r\n$8\r\nreleased\r\n:0\r\n:2\r\n");
    const Command sign = co_await a.read_command();
    EXPECT_EQ(sign.back(), scripts::end_sign.name);
    EXPECT_EQ(sign.at(3), "redlock:released:{deploy}");
    co_await a.send(ask_at(b_.address()));
    co_await b.expect(wire("ASKING"));
    EXPECT_EQ((co_await b.read_command()).back(), scripts::end_sign.name);
    co_await b.send("+OK\r\n:1\r\n");
    const ReleaseVote answer = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Released>(answer));
  }());
}

TEST_F(ClusterTest, ReadsTheSignOfAReleaseWhereTheKeyIsNowhere) {
  for (const bool has_sign : {true, false}) {
    drive_.run([this, has_sign]() -> asio::awaitable<void> {
      server_ = std::make_unique<ClusterServer>(drive_.executor(), clock_, endpoint());
      const AskRequest request{deploy(), LeaseId{"1"}, {}, {}, /*exclusive=*/true};
      auto vote = drive_.start(server_->ask_holder(request, clock_.now() + 3s));
      auto [a, b] = co_await asked_on_the_way(scripts::ask, "");
      expect_script(co_await a.read_command(), scripts::ask, "1");
      co_await a.send("*2\r\n$4\r\nfree\r\n:0\r\n");
      EXPECT_EQ((co_await a.read_command()).back(), scripts::end_sign.name);
      co_await a.send(has_sign ? ":1\r\n" : "-ERR anything\r\n");
      const InspectVote answer = co_await vote.get();
      EXPECT_TRUE(std::holds_alternative<Free>(answer));
      EXPECT_EQ(std::get<Free>(answer).ended, has_sign);
    }());
  }
}

TEST_F(ClusterTest, DoesNotCountAnExtensionWhoseTtlIsNotRemembered) {
  for (const bool is_remembered : {true, false}) {
    drive_.run([this, is_remembered]() -> asio::awaitable<void> {
      server_ = std::make_unique<ClusterServer>(drive_.executor(), clock_, endpoint());
      const ExtendRequest request{deploy(), token(), Ttl::from(30s).value()};
      auto vote = drive_.start(server_->extend(request, clock_.now() + 3s));
      auto [a, b] = co_await asked_on_the_way(scripts::extend, "0");
      co_await b.expect(wire("ASKING"));
      expect_script(co_await b.read_command(), scripts::extend, "11");
      co_await b.send(
          "+OK\r\n*9\r\n$8\r\nextended\r\n$1\r\n1\r\n$6\r\nstring\r\n:30000\r\n:0\r\n$0\r\n"
          "\r\n:-1\r\n:0\r\n$0\r\n\r\n");
      const Command rest = co_await a.read_command();
      EXPECT_EQ(rest.back(), scripts::keep_record.name);
      EXPECT_EQ(rest.at(3), "redlock:owner:{deploy}");
      co_await a.send(is_remembered ? ":1\r\n" : "-ERR anything\r\n");
      const ExtendVote answer = co_await vote.get();
      EXPECT_EQ(std::holds_alternative<Extended>(answer), is_remembered);
    }());
  }
}

TEST_F(ClusterTest, AcquiresNoLockWhileTheKeyIsNowhere) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = drive_.start(acquire());
    auto [a, b] = co_await asked_on_the_way(scripts::acquire, "");
    const AcquireVote answer = co_await vote.get();
    EXPECT_EQ(std::get<Fault>(answer).kind, FaultKind::unavailable);
  }());
}

TEST_F(ClusterTest, GivesUpAfterFiveRedirects) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = drive_.start(server_->inspect(deploy(), std::nullopt, clock_.now() + 3s));
    Peer a = co_await asked_for_slots(a_.address());
    for (int questions = 0; questions < 6; ++questions) {
      EXPECT_FALSE((co_await a.read_command()).empty());
      co_await a.send(moved_to(a_.address()));
    }
    const InspectVote answer = co_await vote.get();
    EXPECT_NE(std::get<Fault>(answer).text.find("more than 5 redirects"), std::string::npos);
  }());
}

TEST_F(ClusterTest, KeepsConnectionsToTheNewestFewOfTheServersThatOnlyRedirectsNamed) {
  drive_.run([this]() -> asio::awaitable<void> {
    std::deque<FakeTcpServer> named;
    for (int i = 0; i < 18; ++i) named.emplace_back(drive_);
    Endpoint one = endpoint();
    one.members = {a_.address()};
    server_ = std::make_unique<ClusterServer>(drive_.executor(), clock_, one);
    std::vector<Peer> peers;
    auto vote = drive_.start(server_->inspect(deploy(), std::nullopt, clock_.now() + 3s));
    Peer last = co_await asked_for_slots(a_.address());
    for (FakeTcpServer& next : named) {
      EXPECT_FALSE((co_await last.read_command()).empty());
      co_await last.send(moved_to(next.address()));
      peers.push_back(std::move(last));
      // After five redirects, the sixth is the answer to the next question.
      if (peers.size() % 6 == 0) {
        co_await vote.get();
        vote = drive_.start(server_->inspect(deploy(), std::nullopt, clock_.now() + 3s));
        Peer& a = peers.front();
        co_await a.expect(wire("CLUSTER SLOTS"));
        co_await a.send(all_slots_at(next.address()));
      }
      last = co_await next.accept();
    }
    EXPECT_FALSE((co_await last.read_command()).empty());
    // A is a member, the last one has the slot: of the rest sixteen stay.
    co_await peers[1].expect_end();
    co_await last.send(std::string(is_free));
    co_await vote.get();
  }());
}

TEST_F(ClusterTest, KeepsFewConnectionsToManyMastersButThoseWhereSomethingMayHaveToBeUndone) {
  drive_.run([this]() -> asio::awaitable<void> {
    constexpr std::size_t count = 66;
    std::deque<FakeTcpServer> masters;
    std::vector<Resource> keys;
    std::string view = "*" + std::to_string(count) + "\r\n";
    for (std::size_t i = 0; i < count; ++i) {
      const Address address = masters.emplace_back(drive_).address();
      const std::size_t first = i * 16384 / count;
      const std::size_t last = (i + 1) * 16384 / count - 1;
      view += slots_at(first, last, address);
      int number = 0;
      const auto is_in = [&](const std::string& key) {
        return hash_slot(key) >= first && hash_slot(key) <= last;
      };
      while (!is_in("k" + std::to_string(number))) ++number;
      keys.push_back(Resource::from("k" + std::to_string(number)).value());
    }
    const AcquireRequest request{keys[0], token(), Ttl::from(30s).value(), {}};
    auto acquired = drive_.start(server_->acquire(request, clock_.now() + 3s));
    Peer a = co_await a_.accept();
    co_await a.expect(wire("CLUSTER SLOTS"));
    co_await a.send(view);
    Peer holder = co_await masters[0].accept();
    co_await holder.read_command();
    co_await holder.send(std::string(granted));
    const AcquireVote vote = co_await acquired.get();
    EXPECT_TRUE(std::holds_alternative<Granted>(vote));

    std::vector<Peer> others;
    for (std::size_t i = 1; i < count; ++i) {
      auto seen = drive_.start(server_->inspect(keys[i], std::nullopt, clock_.now() + 3s));
      others.push_back(co_await masters[i].accept());
      co_await others.back().read_command();
      co_await others.back().send(std::string(is_free));
      const InspectVote free = co_await seen.get();
      EXPECT_TRUE(std::holds_alternative<Free>(free));
    }
    // With those of the view and of the lease, 64 are kept.
    co_await a.expect_end();
    co_await others[0].expect_end();
    co_await others[1].expect_end();
    server_->undo(keys[0], token());
    const Command undo = co_await holder.read_command();
    EXPECT_EQ(undo.at(0), "EVALSHA");
    auto again = drive_.start(server_->inspect(keys[3], std::nullopt, clock_.now() + 3s));
    const Command question = co_await others[2].read_command();
    EXPECT_EQ(question.at(0), "EVALSHA");
    co_await others[2].send(std::string(is_free));
    co_await again.get();
  }());
}

TEST_F(ClusterTest, UndoesWhatASilentServerMayHaveThatIsNoLongerNamed) {
  FakeTcpServer c(drive_);
  Endpoint one = endpoint();
  one.members = {a_.address()};
  server_ = std::make_unique<ClusterServer>(drive_.executor(), clock_, one);
  drive_.run([this, &c]() -> asio::awaitable<void> {
    auto vote = drive_.start(acquire());
    Peer a = co_await asked_for_slots(b_.address());
    Peer b = co_await b_.accept();
    expect_script(co_await b.read_command(), scripts::acquire, "9");
    clock_.advance(3s);
    const AcquireVote silent = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Fault>(silent));

    auto again = drive_.start(server_->inspect(deploy(), std::nullopt, clock_.now() + 3s));
    co_await a.expect(wire("CLUSTER SLOTS"));
    co_await a.send(all_slots_at(c.address()));
    Peer other = co_await c.accept();
    expect_script(co_await other.read_command(), scripts::inspect, "10");
    server_->undo(deploy(), token());
    expect_script(co_await b.read_command(), scripts::release, "9");
    co_await other.send(std::string(is_free));
    co_await again.get();
  }());
}

TEST_F(ClusterTest, WhatAMasterMayHaveGotIsNotDoneElsewhereWhenANewConnectionIsRefused) {
  std::optional<FakeTcpServer> master(std::in_place, drive_);
  Endpoint one = endpoint();
  one.members = {a_.address()};
  server_ = std::make_unique<ClusterServer>(drive_.executor(), clock_, one);
  drive_.run([&, this]() -> asio::awaitable<void> {
    const Address address = master->address();
    auto slow = drive_.start(server_->acquire(
        AcquireRequest{deploy(), token(), Ttl::from(30s).value(), {}}, clock_.now() + 5s));
    Peer a = co_await asked_for_slots(address);
    Peer peer = co_await master->accept();
    expect_script(co_await peer.read_command(), scripts::acquire, "9");
    auto vote = drive_.start(server_->inspect(deploy(), std::nullopt, clock_.now() + 3s));
    expect_script(co_await peer.read_command(), scripts::inspect, "10");
    clock_.advance(3s);
    co_await vote.get();
    master.reset();
    vote = drive_.start(server_->inspect(deploy(), std::nullopt, clock_.now() + 3s));
    co_await a.expect(wire("CLUSTER SLOTS"));
    co_await a.send(all_slots_at(address));
    co_await a.expect(wire("CLUSTER SLOTS"));
    co_await a.send(all_slots_at(address));
    const InspectVote refused = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Fault>(refused));
    // A question for the slots would mean that another master is looked for.
    clock_.advance(2s);
    const AcquireVote silent = co_await slow.get();
    EXPECT_EQ(std::get<Fault>(silent).kind, FaultKind::silent);
    server_->undo(deploy(), token());
    expect_script(co_await peer.read_command(), scripts::release, "9");
  }());
}

TEST_F(ClusterTest, AsksAnotherForTheSlotsWhenOneIsSilent) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = drive_.start(server_->inspect(deploy(), std::nullopt, clock_.now() + 3s));
    Peer a = co_await a_.accept();
    co_await a.expect(wire("CLUSTER SLOTS"));
    clock_.advance(1s);
    Peer b = co_await b_.accept();
    co_await b.expect(wire("CLUSTER SLOTS"));
    co_await b.send(all_slots_at(b_.address()));
    expect_script(co_await b.read_command(), scripts::inspect, "10");
    co_await b.send(std::string(is_free));
    const InspectVote answer = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Free>(answer));
  }());
}

TEST_F(ClusterTest, FindingAFarMasterDoesNotUseUpTheTimeOfTheQuestion) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = drive_.start(server_->inspect(deploy(), std::nullopt, clock_.now() + 3s));
    Peer a = co_await a_.accept();
    co_await a.expect(wire("CLUSTER SLOTS"));
    clock_.advance(1s);
    Peer b = co_await b_.accept();
    co_await b.expect(wire("CLUSTER SLOTS"));
    clock_.advance(1900ms);
    co_await a.send(all_slots_at(a_.address()));
    expect_script(co_await a.read_command(), scripts::inspect, "10");
    clock_.advance(2900ms);
    co_await a.send(std::string(is_free));
    const InspectVote answer = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Free>(answer));
  }());
}

TEST_F(ClusterTest, ComparesViewsAgainWhenAMasterFails) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = drive_.start(server_->inspect(deploy(), std::nullopt, clock_.now() + 3s));
    Peer a = co_await asked_for_slots(b_.address());
    {
      Peer b = co_await b_.accept();
      expect_script(co_await b.read_command(), scripts::inspect, "10");
    }
    const InspectVote broke = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Fault>(broke));

    auto again = drive_.start(server_->inspect(deploy(), std::nullopt, clock_.now() + 3s));
    co_await a.expect(wire("CLUSTER SLOTS"));
    co_await a.send(all_slots_at(a_.address()));
    expect_script(co_await a.read_command(), scripts::inspect, "10");
    co_await a.send(std::string(is_free));
    const InspectVote answer = co_await again.get();
    EXPECT_TRUE(std::holds_alternative<Free>(answer));
  }());
}

/// A cluster of which three nodes are configured, and one that is gone: whatever names it is wrong.
class ClusterViewsTest : public ClusterTest {
 protected:
  void SetUp() override {
    gone_ = FakeTcpServer(drive_).address();
    Endpoint three = endpoint();
    three.members.push_back(c_.address());
    server_ = std::make_unique<ClusterServer>(drive_.executor(), clock_, three);
  }

  Eventual<InspectVote> start_inspect() {
    return drive_.start(server_->inspect(deploy(), std::nullopt, clock_.now() + 3s));
  }
  static asio::awaitable<void> tell_slots(Peer& peer, std::string slots) {
    co_await peer.expect(wire("CLUSTER SLOTS"));
    co_await peer.send(std::move(slots));
  }
  static asio::awaitable<void> tell_view(Peer& peer, std::string slots, std::string info) {
    co_await tell_slots(peer, std::move(slots));
    co_await peer.expect(wire("CLUSTER INFO"));
    co_await peer.send(std::move(info));
  }
  static asio::awaitable<void> is_free_at(Peer& peer, Eventual<InspectVote>& vote) {
    expect_script(co_await peer.read_command(), scripts::inspect, "10");
    co_await peer.send(std::string(is_free));
    const InspectVote answer = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Free>(answer));
  }

  FakeTcpServer c_{drive_};
  Address gone_;
};

TEST_F(ClusterViewsTest, ANodeWithAnEmptyMapOrWithoutTheSlotIsPassedOverInTheSameAttempt) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = start_inspect();
    Peer a = co_await a_.accept();
    co_await tell_slots(a, "*0\r\n");
    Peer b = co_await b_.accept();
    co_await tell_slots(b, std::string(other_half));
    Peer c = co_await c_.accept();
    co_await tell_slots(c, all_slots_at(c_.address()));
    co_await is_free_at(c, vote);
  }());
}

TEST_F(ClusterViewsTest, WithoutAMapThatHasTheSlotEachNodeIsNamed) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = start_inspect();
    Peer a = co_await a_.accept();
    co_await tell_slots(a, "*0\r\n");
    Peer b = co_await b_.accept();
    co_await tell_slots(b, "*0\r\n");
    Peer c = co_await c_.accept();
    co_await tell_slots(c, "*0\r\n");
    const InspectVote answer = co_await vote.get();
    const Fault fault = std::get<Fault>(answer);
    EXPECT_EQ(fault.kind, FaultKind::unavailable);
    for (const FakeTcpServer* node : {&a_, &b_, &c_})
      EXPECT_NE(fault.text.find(node->address().text()), std::string::npos) << fault.text;
  }());
}

TEST_F(ClusterViewsTest, AMasterThatCannotBeReachedLeadsToTheViewWithTheLargestEpoch) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = start_inspect();
    Peer a = co_await a_.accept();
    co_await tell_slots(a, all_slots_at(gone_));
    co_await tell_view(a, all_slots_at(gone_), at_epoch(5));
    Peer b = co_await b_.accept();
    co_await tell_view(b, all_slots_at(b_.address()), at_epoch(4));
    Peer c = co_await c_.accept();
    co_await tell_view(c, all_slots_at(c_.address()), at_epoch(6));
    co_await is_free_at(c, vote);
  }());
}

TEST_F(ClusterViewsTest, AnOlderViewIsTriedWhereTheNewestNamesADeadMaster) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = start_inspect();
    Peer a = co_await a_.accept();
    co_await tell_slots(a, all_slots_at(gone_));
    // A replica that is cut off: each election that it lost has counted its epoch up.
    co_await tell_view(a, all_slots_at(gone_), at_epoch(9));
    Peer b = co_await b_.accept();
    co_await tell_view(b, all_slots_at(b_.address()), at_epoch(6));
    Peer c = co_await c_.accept();
    co_await tell_view(c, all_slots_at(gone_), at_epoch(5));
    co_await is_free_at(b, vote);
  }());
}

TEST_F(ClusterViewsTest, AMasterThatWasSilentIsTriedAgainOnlyIfNoNodeNamesAnother) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = start_inspect();
    Peer a = co_await a_.accept();
    co_await tell_slots(a, all_slots_at(b_.address()));
    Peer b = co_await b_.accept();
    expect_script(co_await b.read_command(), scripts::inspect, "10");
    clock_.advance(3s);
    co_await vote.get();

    vote = start_inspect();
    Peer c = co_await c_.accept();
    co_await tell_view(c, all_slots_at(b_.address()), at_epoch(5));
    co_await tell_view(a, all_slots_at(b_.address()), at_epoch(5));
    Peer again = co_await b_.accept();
    expect_script(co_await again.read_command(), scripts::inspect, "10");
    clock_.advance(3s);
    co_await vote.get();

    vote = start_inspect();
    co_await tell_view(c, all_slots_at(b_.address()), at_epoch(5));
    co_await tell_view(a, all_slots_at(a_.address()), at_epoch(5));
    co_await is_free_at(a, vote);
  }());
}

TEST_F(ClusterViewsTest, ALateFailureDoesNotEndTheUseOfANewerView) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto slow = drive_.start(server_->inspect(deploy(), std::nullopt, clock_.now() + 5s));
    Peer a = co_await a_.accept();
    co_await tell_slots(a, all_slots_at(b_.address()));
    Peer b = co_await b_.accept();
    expect_script(co_await b.read_command(), scripts::inspect, "10");
    auto vote = start_inspect();
    expect_script(co_await b.read_command(), scripts::inspect, "10");
    clock_.advance(3s);
    co_await vote.get();

    vote = start_inspect();
    co_await tell_view(a, all_slots_at(b_.address()), at_epoch(5));
    Peer c = co_await c_.accept();
    co_await tell_view(c, all_slots_at(c_.address()), at_epoch(6));
    co_await is_free_at(c, vote);
    clock_.advance(2s);
    const InspectVote silent = co_await slow.get();
    EXPECT_TRUE(std::holds_alternative<Fault>(silent));
    vote = start_inspect();
    co_await is_free_at(c, vote);
  }());
}

TEST_F(ClusterViewsTest, ASubscriptionEndsWhenAnotherViewNamesAnotherMaster) {
  drive_.run([this]() -> asio::awaitable<void> {
    std::vector<Notification> told;
    auto subscribed = drive_.start(server_->subscribe(
        deploy(), "waiter", [&told](Notification one) { told.push_back(one); }, clock_.now() + 3s));
    Peer a = co_await a_.accept();
    co_await tell_slots(a, all_slots_at(b_.address()));
    Peer subscription = co_await b_.accept();
    EXPECT_EQ((co_await subscription.read_command()).at(0), "SUBSCRIBE");
    co_await subscription.send("*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n");
    const auto fault = co_await subscribed.get();
    EXPECT_FALSE(fault);

    auto vote = start_inspect();
    Peer b = co_await b_.accept();
    expect_script(co_await b.read_command(), scripts::inspect, "10");
    co_await b.send("-CLUSTERDOWN Hash slot not served\r\n");
    co_await tell_view(a, all_slots_at(b_.address()), at_epoch(5));
    Peer c = co_await c_.accept();
    co_await tell_view(c, all_slots_at(c_.address()), at_epoch(6));
    co_await is_free_at(c, vote);
    co_await subscription.expect_end();
    EXPECT_EQ(told, std::vector{Notification::disconnected});
  }());
}

TEST_F(ClusterViewsTest, WithoutTheRightToTheEpochTheNamedMasterThatAnswersDecides) {
  constexpr const char* no_right = "-NOPERM this user has no permissions to run 'cluster|info'\r\n";
  drive_.run([&, this]() -> asio::awaitable<void> {
    auto vote = start_inspect();
    Peer a = co_await a_.accept();
    co_await tell_slots(a, all_slots_at(gone_));
    co_await tell_view(a, all_slots_at(gone_), no_right);
    Peer b = co_await b_.accept();
    co_await tell_view(b, all_slots_at(a_.address()), no_right);
    Peer c = co_await c_.accept();
    co_await tell_view(c, all_slots_at(c_.address()), no_right);
    expect_script(co_await a.read_command(), scripts::inspect, "10");
    co_await a.send("-CLUSTERDOWN Hash slot not served\r\n");
    co_await tell_view(b, all_slots_at(a_.address()), no_right);
    co_await tell_view(c, all_slots_at(c_.address()), no_right);
    co_await is_free_at(c, vote);
  }());
}

TEST_F(ClusterViewsTest, AfterAMasterThatWasSilentTheViewsAreComparedInTheNextAttempt) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = start_inspect();
    Peer a = co_await a_.accept();
    co_await tell_slots(a, all_slots_at(b_.address()));
    Peer b = co_await b_.accept();
    expect_script(co_await b.read_command(), scripts::inspect, "10");
    clock_.advance(3s);
    const InspectVote silent = co_await vote.get();
    EXPECT_EQ(std::get<Fault>(silent).kind, FaultKind::silent);

    vote = start_inspect();
    co_await tell_view(a, all_slots_at(b_.address()), at_epoch(5));
    Peer c = co_await c_.accept();
    co_await tell_view(c, all_slots_at(c_.address()), at_epoch(6));
    co_await is_free_at(c, vote);
    // From now on, that view is the one in use, and no other node is asked.
    vote = start_inspect();
    co_await is_free_at(c, vote);
  }());
}

TEST_F(ClusterViewsTest, AListingIsOfAViewThatHasAMasterForEverySlot) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto listed = drive_.start(server_->list({.answer_timeout = 3s}));
    Peer a = co_await a_.accept();
    co_await tell_view(a, "*0\r\n", at_epoch(5));
    Peer b = co_await b_.accept();
    co_await tell_view(b, all_slots_at(b_.address()), at_epoch(5));
    Peer c = co_await c_.accept();
    co_await tell_view(c, std::string(other_half), at_epoch(5));
    EXPECT_EQ((co_await b.read_command()).at(0), "SCAN");
    co_await b.send("*2\r\n$1\r\n0\r\n*0\r\n");
    const auto list = co_await listed.get();
    EXPECT_TRUE(list);

    listed = drive_.start(server_->list({.answer_timeout = 3s}));
    co_await tell_view(b, "*0\r\n", at_epoch(5));
    co_await tell_view(a, "*0\r\n", at_epoch(5));
    co_await tell_view(c, std::string(other_half), at_epoch(5));
    const auto none = co_await listed.get();
    EXPECT_FALSE(none);
    if (!none) {
      EXPECT_EQ(none.error().kind, FaultKind::unavailable);
      EXPECT_NE(none.error().text.find("8383 of the 16384 slots"), std::string::npos)
          << none.error().text;
    }
  }());
}

TEST_F(ClusterViewsTest, AListingBelievesTheNewestView) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto listed = drive_.start(server_->list({.answer_timeout = 3s}));
    Peer a = co_await a_.accept();
    co_await tell_view(a, all_slots_at(a_.address()), at_epoch(5));
    Peer b = co_await b_.accept();
    co_await tell_view(b, all_slots_at(b_.address()), at_epoch(6));
    Peer c = co_await c_.accept();
    co_await tell_view(c, all_slots_at(gone_), at_epoch(4));
    EXPECT_EQ((co_await b.read_command()).at(0), "SCAN");
    co_await b.send("*2\r\n$1\r\n0\r\n*0\r\n");
    const auto list = co_await listed.get();
    EXPECT_TRUE(list);
  }());
}

TEST_F(ClusterViewsTest, AListingAsksTheNodesThatTheOnlyConfiguredOneNames) {
  Endpoint one = endpoint();
  one.members = {a_.address()};
  server_ = std::make_unique<ClusterServer>(drive_.executor(), clock_, one);
  drive_.run([this]() -> asio::awaitable<void> {
    auto listed = drive_.start(server_->list({.answer_timeout = 3s}));
    Peer a = co_await a_.accept();
    co_await tell_view(a, all_slots_at(b_.address()), at_epoch(5));
    Peer b = co_await b_.accept();
    co_await tell_view(b, all_slots_at(c_.address()), at_epoch(6));
    Peer c = co_await c_.accept();
    EXPECT_EQ((co_await c.read_command()).at(0), "SCAN");
    co_await c.send("*2\r\n$1\r\n0\r\n*0\r\n");
    const auto list = co_await listed.get();
    EXPECT_TRUE(list);
  }());
}

}  // namespace
}  // namespace redlock::redis
