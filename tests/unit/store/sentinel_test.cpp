#include "store/redis/sentinel.hpp"

#include "../samples.hpp"
#include "fake_server.hpp"
#include "store/redis/redis_server.hpp"

namespace redlock::redis {
namespace {

using namespace testing;

constexpr std::string_view is_master = "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n";
constexpr std::string_view is_replica =
    "*5\r\n$5\r\nslave\r\n$9\r\n127.0.0.1\r\n:1\r\n$9\r\nconnected\r\n:0\r\n";
constexpr std::string_view read_only = "-READONLY You can't write against a read only replica.\r\n";

std::string announcement(const Address& address) {
  const std::string port = std::to_string(address.port);
  return "*2\r\n$" + std::to_string(address.host.size()) + "\r\n" + address.host + "\r\n$" +
         std::to_string(port.size()) + "\r\n" + port + "\r\n";
}

class SentinelTest : public ::testing::Test {
 protected:
  Endpoint endpoint() {
    Endpoint endpoint;
    endpoint.kind = Endpoint::Kind::sentinel;
    endpoint.members = {first_.address(), second_.address()};
    endpoint.master = "mymaster";
    return endpoint;
  }

  /// A sentinel is asked, and answers so.
  static asio::awaitable<void> answer(FakeTcpServer& sentinel, std::string reply) {
    Peer peer = co_await sentinel.accept();
    co_await peer.expect(wire("SENTINEL get-master-addr-by-name mymaster"));
    co_await peer.send(std::move(reply));
    co_await peer.expect_end();
  }

  /// The same where all are compared; with -1 it may not tell the epoch.
  static asio::awaitable<void> compared(FakeTcpServer& sentinel, std::string reply,
                                        int epoch = -1) {
    Peer peer = co_await sentinel.accept();
    co_await peer.expect(wire("SENTINEL get-master-addr-by-name mymaster"));
    co_await peer.send(std::move(reply));
    co_await peer.expect(wire("SENTINEL MASTER mymaster"));
    std::string details = "-NOPERM this user may not\r\n";
    if (epoch >= 0) {
      const std::string digits = std::to_string(epoch);
      details = "*4\r\n$4\r\nname\r\n$8\r\nmymaster\r\n$12\r\nconfig-epoch\r\n$" +
                std::to_string(digits.size()) + "\r\n" + digits + "\r\n";
    }
    co_await peer.send(std::move(details));
    co_await peer.expect_end();
  }

  /// The server that the first sentinel names is silent in one attempt.
  asio::awaitable<Peer> silent_for_one_attempt(FakeTcpServer& server) {
    auto vote = start_inspect();
    co_await answer(first_, announcement(server.address()));
    Peer silent = co_await server.accept();
    co_await silent.expect(wire("ROLE"));
    clock_.advance(3s);
    const InspectVote unanswered = co_await vote.get();
    EXPECT_EQ(std::get<Fault>(unanswered).kind, FaultKind::silent);
    co_return silent;
  }

  /// A script arrives behind ROLE, which is answered so.
  static asio::awaitable<Peer> connected(FakeTcpServer& server, std::string_view role,
                                         std::string_view reply) {
    Peer peer = co_await server.accept();
    co_await peer.expect(wire("ROLE"));
    const Command script = co_await peer.read_command();
    EXPECT_EQ(script.at(0), "EVALSHA");
    if (script.back() == scripts::inspect.name) {
      co_await peer.expect(wire("ROLE", "INFO replication"));
      co_await peer.send(std::string(role).append(reply).append(is_master_behind));
    } else {
      co_await peer.send(std::string(role).append(reply));
    }
    co_return peer;
  }

  Eventual<InspectVote> start_inspect() {
    return drive_.start(server_->inspect(deploy(), std::nullopt, clock_.now() + 3s));
  }
  Eventual<AcquireVote> start_acquire() {
    return drive_.start(server_->acquire(
        AcquireRequest{deploy(), token(), Ttl::from(30s).value(), {}}, clock_.now() + 3s));
  }

  Drive drive_;
  ManualClock clock_{drive_.clock()};
  FakeTcpServer first_{drive_};
  FakeTcpServer second_{drive_};
  FakeTcpServer master_{drive_};
  FakeTcpServer replica_{drive_};
  std::unique_ptr<RedisServer> server_ =
      std::make_unique<RedisServer>(drive_.executor(), clock_, endpoint());
};

TEST_F(SentinelTest, TheMasterThatIsAnnouncedIsAskedBehindRole) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = start_inspect();
    co_await answer(first_, announcement(master_.address()));
    Peer peer = co_await connected(master_, is_master, is_free);
    const InspectVote free = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Free>(free));
  }());
}

TEST_F(SentinelTest,
       ASentinelThatIsSilentOrKnowsNothingIsPassedOverAndTheOtherIsAskedFirstFromThenOn) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = start_inspect();
    Peer silent = co_await first_.accept();
    co_await silent.expect(wire("SENTINEL get-master-addr-by-name mymaster"));
    clock_.advance(1s);  // a third of the time
    co_await answer(second_, announcement(master_.address()));
    {
      Peer peer = co_await connected(master_, is_master, is_free);
      const InspectVote free = co_await vote.get();
      EXPECT_TRUE(std::holds_alternative<Free>(free));
      vote = start_inspect();
      EXPECT_FALSE((co_await peer.read_command()).empty());
    }
    const InspectVote broke = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Fault>(broke));
    auto again = start_inspect();
    co_await answer(second_, "*-1\r\n");
    co_await answer(first_, announcement(master_.address()));
    Peer peer = co_await connected(master_, is_master, is_free);
    const InspectVote free = co_await again.get();
    EXPECT_TRUE(std::holds_alternative<Free>(free));
  }());
}

TEST_F(SentinelTest, TheOnlySentinelHasAllOfTheTime) {
  Endpoint alone = endpoint();
  alone.members.pop_back();
  server_ = std::make_unique<RedisServer>(drive_.executor(), clock_, alone);
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = start_inspect();
    Peer far = co_await first_.accept();
    co_await far.expect(wire("SENTINEL get-master-addr-by-name mymaster"));
    clock_.advance(2900ms);
    co_await far.send(announcement(master_.address()));
    Peer peer = co_await connected(master_, is_master, is_free);
    const InspectVote free = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Free>(free));
  }());
}

TEST_F(SentinelTest, AFarSentinelMayStillAnswerWhileTheNextIsAsked) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = start_inspect();
    Peer far = co_await first_.accept();
    co_await far.expect(wire("SENTINEL get-master-addr-by-name mymaster"));
    clock_.advance(1s);
    Peer silent = co_await second_.accept();
    co_await silent.expect(wire("SENTINEL get-master-addr-by-name mymaster"));
    co_await far.send(announcement(master_.address()));
    Peer peer = co_await connected(master_, is_master, is_free);
    const InspectVote free = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Free>(free));
  }());
}

TEST_F(SentinelTest, WhoIsNoMasterGivesNoVoteAndTheSentinelsAreAskedAgain) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = start_acquire();
    co_await answer(first_, announcement(replica_.address()));
    // A replica that is promoted between the two questions grants; that does not count, and it is
    // taken back there.
    Peer peer = co_await connected(replica_, is_replica, granted);
    co_await compared(first_, announcement(replica_.address()));
    co_await compared(second_, announcement(replica_.address()));
    const AcquireVote refused = co_await vote.get();
    const auto* fault = std::get_if<Fault>(&refused);
    EXPECT_TRUE(fault != nullptr && fault->kind == FaultKind::unavailable &&
                fault->text.find("not a master") != std::string::npos);
    server_->undo(deploy(), token());
    const Command taken_back = co_await peer.read_command();
    EXPECT_EQ(taken_back.back(), scripts::release.name);

    auto again = start_inspect();
    co_await compared(first_, announcement(master_.address()));
    co_await compared(second_, announcement(replica_.address()));
    Peer new_peer = co_await connected(master_, is_master, is_free);
    const InspectVote free = co_await again.get();
    EXPECT_TRUE(std::holds_alternative<Free>(free));
  }());
}

TEST_F(SentinelTest, ASentinelThatNamesWhatIsNoMasterIsOverruledByAnotherInTheSameAttempt) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = start_acquire();
    co_await answer(first_, announcement(replica_.address()));
    Peer old = co_await connected(replica_, is_replica, read_only);
    co_await compared(first_, announcement(replica_.address()));
    co_await compared(second_, announcement(master_.address()));
    Peer peer = co_await connected(master_, is_master, granted);
    const AcquireVote answered = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Granted>(answered));
  }());
}

TEST_F(SentinelTest, ASentinelThatNamesADeadMasterIsOverruledByAnotherInTheSameAttempt) {
  drive_.run([this]() -> asio::awaitable<void> {
    const Address gone = FakeTcpServer(drive_).address();
    auto vote = start_acquire();
    co_await answer(first_, announcement(gone));
    co_await compared(first_, announcement(gone));
    co_await compared(second_, announcement(master_.address()));
    Peer peer = co_await connected(master_, is_master, granted);
    const AcquireVote answered = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Granted>(answered));
    // The one that was right is asked first from now on.
    peer.close();
    auto again = start_inspect();
    co_await again.get();
    again = start_inspect();
    co_await answer(second_, announcement(master_.address()));
    Peer anew = co_await connected(master_, is_master, is_free);
    co_await again.get();
  }());
}

TEST_F(SentinelTest, ADeadMasterThatAllNameIsTriedOnceAnAttempt) {
  drive_.run([this]() -> asio::awaitable<void> {
    const Address gone = FakeTcpServer(drive_).address();
    for (int attempt = 0; attempt < 2; ++attempt) {
      auto vote = start_inspect();
      co_await answer(first_, announcement(gone));
      co_await compared(first_, announcement(gone));
      co_await compared(second_, announcement(gone));
      const InspectVote answered = co_await vote.get();
      EXPECT_NE(std::get<Fault>(answered).text.find("the master redis://" + gone.text()),
                std::string::npos)
          << std::get<Fault>(answered).text;
    }
  }());
}

TEST_F(SentinelTest, AfterAMasterThatWasSilentOneThatIsNamedAsOftenIsAsked) {
  drive_.run([this]() -> asio::awaitable<void> {
    const Peer silent = co_await silent_for_one_attempt(replica_);
    auto vote = start_inspect();
    co_await compared(first_, announcement(replica_.address()));
    co_await compared(second_, announcement(master_.address()));
    Peer peer = co_await connected(master_, is_master, is_free);
    const InspectVote free = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Free>(free));
  }());
}

TEST_F(SentinelTest, ASilentMasterIsNotLeftForOneThatFewerSentinelsName) {
  FakeTcpServer third(drive_);
  Endpoint three = endpoint();
  three.members.push_back(third.address());
  server_ = std::make_unique<RedisServer>(drive_.executor(), clock_, three);
  drive_.run([&, this]() -> asio::awaitable<void> {
    const Peer silent = co_await silent_for_one_attempt(master_);
    auto vote = start_inspect();
    co_await compared(first_, announcement(master_.address()));
    co_await compared(second_, announcement(replica_.address()));
    co_await compared(third, announcement(master_.address()));
    Peer peer = co_await connected(master_, is_master, is_free);
    const InspectVote free = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Free>(free));
  }());
}

TEST_F(SentinelTest, ASilentMasterIsNotLeftForOneOfAnEarlierFailOver) {
  drive_.run([this]() -> asio::awaitable<void> {
    const Peer silent = co_await silent_for_one_attempt(master_);
    auto vote = start_inspect();
    co_await compared(first_, announcement(master_.address()), 10);
    co_await compared(second_, announcement(replica_.address()), 9);
    Peer peer = co_await connected(master_, is_master, is_free);
    const InspectVote free = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Free>(free));
  }());
}

TEST_F(SentinelTest, AMasterThatWasLateAfterItHadAnsweredIsNotInDoubt) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = start_inspect();
    co_await answer(first_, announcement(master_.address()));
    Peer busy = co_await connected(master_, is_master, is_free);
    co_await vote.get();
    vote = start_inspect();
    EXPECT_FALSE((co_await busy.read_command()).empty());
    clock_.advance(3s);
    const InspectVote late = co_await vote.get();
    EXPECT_EQ(std::get<Fault>(late).kind, FaultKind::silent);
    // The first sentinel is believed, and no other is asked.
    vote = start_inspect();
    co_await answer(first_, announcement(master_.address()));
    Peer peer = co_await connected(master_, is_master, is_free);
    const InspectVote free = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Free>(free));
  }());
}

TEST_F(SentinelTest, AMasterThatWasFoundForAnAttemptIsNotUsedAfterIt) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = start_acquire();
    co_await answer(first_, announcement(replica_.address()));
    const Peer old = co_await connected(replica_, is_replica, read_only);
    // What is undone is put to no other master.
    co_await compared(first_, announcement(master_.address()));
    server_->undo(deploy(), token());
    co_await compared(second_, announcement(master_.address()));
    const AcquireVote undone = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Fault>(undone));
    clock_.advance(3s);
    auto later = start_inspect();
    co_await compared(first_, announcement(replica_.address()), 2);
    co_await compared(second_, announcement(master_.address()), 1);
    Peer peer = co_await connected(replica_, is_master, is_free);
    const InspectVote free = co_await later.get();
    EXPECT_TRUE(std::holds_alternative<Free>(free));
  }());
}

TEST_F(SentinelTest, AConnectionThatHasBecomeReadOnlyIsLeftAndTheQuestionPutToTheNewMaster) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto first = start_inspect();
    co_await answer(first_, announcement(replica_.address()));
    Peer old = co_await connected(replica_, is_master, is_free);
    co_await first.get();

    auto vote = start_acquire();
    const Command acquire = co_await old.read_command();
    EXPECT_EQ(acquire.back(), scripts::acquire.name);
    co_await old.send(std::string(read_only));
    co_await answer(first_, announcement(master_.address()));
    Peer peer = co_await connected(master_, is_master, granted);
    const AcquireVote answer = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Granted>(answer));
    // Where nothing was done nothing is taken back.
    server_->undo(deploy(), token());
    EXPECT_EQ((co_await peer.read_command()).back(), scripts::release.name);
    peer.close();
    co_await server_->close(clock_.now());
    co_await old.expect_end();
  }());
}

TEST_F(SentinelTest, AnAttemptOfAWaiterThatHasLeftIsNotPutToTheNewMaster) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto first = start_inspect();
    co_await answer(first_, announcement(replica_.address()));
    Peer old = co_await connected(replica_, is_master, is_free);
    co_await first.get();

    AcquireRequest waiting{deploy(), token(), Ttl::from(30s).value(), {}};
    waiting.entry = QueueEntry{"waiter", 1, /*polls=*/false, 30s};
    auto vote = drive_.start(server_->acquire(std::move(waiting), clock_.now() + 3s));
    EXPECT_EQ((co_await old.read_command()).back(), scripts::acquire.name);
    server_->leave(deploy(), "waiter");
    EXPECT_EQ((co_await old.read_command()).back(), scripts::leave.name);
    co_await old.send(std::string(read_only));
    const AcquireVote answer = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Fault>(answer));
  }());
}

TEST_F(SentinelTest, AReadOnlyServerThatWasJustConnectedIsAskedOnce) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = start_acquire();
    co_await answer(first_, announcement(replica_.address()));
    Peer peer = co_await connected(replica_, is_master, read_only);
    const AcquireVote refused = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Fault>(refused));
  }());
}

TEST_F(SentinelTest, WithoutASentinelThatKnowsThereIsAFaultThatNamesThemAll) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = start_inspect();
    co_await answer(first_, "*-1\r\n");
    co_await answer(second_, "*-1\r\n");
    const InspectVote unknown = co_await vote.get();
    const Fault fault = std::get<Fault>(unknown);
    EXPECT_EQ(fault.kind, FaultKind::misconfigured);
    EXPECT_NE(fault.text.find(first_.address().text()), std::string::npos) << fault.text;
    EXPECT_NE(fault.text.find(second_.address().text()), std::string::npos) << fault.text;

    auto again = start_inspect();
    co_await answer(first_, "*-1\r\n");
    co_await answer(second_, "*2\r\n$1\r\nh\r\n$1\r\n0\r\n");
    const InspectVote nonsense = co_await again.get();
    EXPECT_EQ(std::get<Fault>(nonsense).kind, FaultKind::silent);  // one of them may know better
  }());
}

}  // namespace
}  // namespace redlock::redis
