#include "store/redis/redis_server.hpp"

#include <fstream>

#include "../samples.hpp"
#include "fake_server.hpp"

namespace redlock::redis {
namespace {

using namespace testing;

constexpr std::string_view held =
    "*10\r\n$4\r\nheld\r\n$2\r\nid\r\n$6\r\nstring\r\n:-1\r\n:0\r\n$0\r\n\r\n:-1\r\n:0\r\n$"
    "0\r\n\r\n*13\r\n$2\r\n17\r\n$0\r\n\r\n:0\r\n:"
    "0\r\n:-1\r\n$0\r\n\r\n:0\r\n:0\r\n$0\r\n\r\n$0\r\n\r\n:-1\r\n$0\r\n\r\n$0\r\n\r\n";
constexpr std::string_view gone = "*2\r\n$4\r\ngone\r\n:0\r\n";
constexpr std::string_view busy = "-BUSY Redis is busy running a script.\r\n";
constexpr std::string_view noscript = "-NOSCRIPT No matching script. Please use EVAL.\r\n";

/// Whether the command runs this script by its digest.
void expect_evalsha(const Command& command, const Script& script) {
  ASSERT_GE(command.size(), 2U);
  EXPECT_EQ(command[0], "EVALSHA");
  EXPECT_EQ(command[1], scripts::sha1);
  EXPECT_EQ(command.back(), script.name);
}

/// What the command is about: the word behind the nine keys.
void expect_about(const Command& command, const Token& token) {
  ASSERT_GT(command.size(), 12U) << ::testing::PrintToString(command);
  EXPECT_EQ(command[2], "9");
  EXPECT_EQ(command[3], "deploy");
  EXPECT_EQ(command[12], token.secret());
}
void expect_evalsha(const Command& command, const Script& script, const Token& token) {
  expect_evalsha(command, script);
  expect_about(command, token);
}

/// What has a server learn the scripts.
void expect_teaching(const Command& command) {
  const Command teaching{"EVAL", std::string(scripts::text), "1", "deploy", "none"};
  EXPECT_EQ(command, teaching);
}

/// What follows a release that no caller waits for.
void expect_undo(const Command& command, const Token& token) {
  const Command undo{"EVAL",        std::string(scripts::undo), "3",
                     "deploy",      "redlock:readers:{deploy}", "redlock:shares:{deploy}",
                     token.secret()};
  EXPECT_EQ(command, undo);
}

class RedisServerTest : public ::testing::Test {
 protected:
  std::unique_ptr<RedisServer> make_server() {
    return std::make_unique<RedisServer>(drive_.executor(), clock_, fake_.endpoint());
  }

  asio::awaitable<AcquireVote> acquire(Token with, Instant deadline) {
    return server_->acquire(AcquireRequest{resource(), std::move(with), ttl(), {}}, deadline);
  }
  Eventual<AcquireVote> start_acquire(Token with = token()) {
    return drive_.start(acquire(std::move(with), Instant::max()));
  }
  Eventual<InspectVote> start_inspect() {
    return drive_.start(server_->inspect(resource(), std::nullopt, Instant::max()));
  }

  /// A whole acquire that the server grants.
  asio::awaitable<Peer> granted_on_new_connection() {
    auto vote = start_acquire();
    Peer peer = co_await fake_.accept();
    expect_evalsha(co_await peer.read_command(), scripts::acquire, token());
    co_await peer.send(std::string(granted));
    const AcquireVote answer = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Granted>(answer));
    co_return peer;
  }

  /// A whole acquire that the server takes and does not answer in time.
  asio::awaitable<Peer> late_on_new_connection(Token with = token()) {
    auto vote = drive_.start(acquire(with, clock_.now() + 1s));
    Peer peer = co_await fake_.accept();
    expect_evalsha(co_await peer.read_command(), scripts::acquire, with);
    clock_.advance(1s);
    const AcquireVote answer = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Fault>(answer));
    co_return peer;
  }

  Drive drive_;
  ManualClock clock_{drive_.clock()};
  FakeServer fake_{drive_};
  std::unique_ptr<RedisServer> server_ = make_server();
};

TEST_F(RedisServerTest, TeachesAServerTheScriptsByACommandOfItsOwn) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = start_acquire();
    Peer peer = co_await fake_.accept();
    expect_evalsha(co_await peer.read_command(), scripts::acquire, token());
    co_await peer.send(std::string(noscript));
    expect_teaching(co_await peer.read_command());
    co_await peer.send("$-1\r\n");
    expect_evalsha(co_await peer.read_command(), scripts::acquire, token());
    co_await peer.send(std::string(granted));
    const AcquireVote answer = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Granted>(answer));
  }());
}

/// What one inspection reports of a server that answers so to ROLE and INFO replication.
class RoleTest : public RedisServerTest {
 protected:
  InspectVote inspected(std::string_view roles) {
    RedisServerOptions options;
    options.unknown_role = [this](const std::string& server) { unknown_.push_back(server); };
    server_ = std::make_unique<RedisServer>(drive_.executor(), clock_, fake_.endpoint(), options);
    std::optional<InspectVote> result;
    drive_.run([this, &result, roles]() -> asio::awaitable<void> {
      auto vote = start_inspect();
      Peer peer = co_await fake_.accept();
      expect_evalsha(co_await peer.read_command(), scripts::inspect);
      co_await peer.expect(wire("ROLE", "INFO replication"));
      co_await peer.send(std::string(is_free).append(roles));
      result = co_await vote.get();
    }());
    return *result;
  }

  std::vector<std::string> unknown_;
};

constexpr std::string_view no_right = "-NOPERM this user has no permissions to run it\r\n";

TEST_F(RoleTest, AReplicaHasNoVoteInAnInspection) {
  const std::string by_role = "*2\r\n$5\r\nslave\r\n:0\r\n";
  const std::string by_info = "$12\r\nrole:slave\r\n\r\n";
  for (const std::string& roles :
       {by_role + std::string(no_right), std::string(no_right) + by_info}) {
    const InspectVote vote = inspected(roles);
    ASSERT_TRUE(std::holds_alternative<Fault>(vote));
    EXPECT_EQ(std::get<Fault>(vote).kind, FaultKind::unavailable);
    EXPECT_NE(std::get<Fault>(vote).text.find("replica"), std::string::npos);
  }
  EXPECT_EQ(unknown_.size(), 0U);
}

TEST_F(RoleTest, ThatIsUnknownIsSaid) {
  const InspectVote vote = inspected(std::string(no_right).append(no_right));
  EXPECT_TRUE(std::holds_alternative<Free>(vote));
  EXPECT_EQ(unknown_, std::vector<std::string>{server_->name()});
}

TEST_F(RoleTest, IsNoAnswerOfABusyServer) {
  const InspectVote vote = inspected(std::string(busy).append(no_right));
  EXPECT_TRUE(std::holds_alternative<Fault>(vote) && std::get<Fault>(vote).refused);
  EXPECT_EQ(unknown_.size(), 0U);
}

TEST_F(RoleTest, OfAMasterWithManyReplicas) {
  std::string role = "*3\r\n$6\r\nmaster\r\n:0\r\n*1000\r\n";
  for (int i = 0; i < 1000; ++i) role += "*3\r\n$8\r\n10.0.0.1\r\n$4\r\n6379\r\n$1\r\n0\r\n";
  const InspectVote vote = inspected(role + std::string(no_right));
  EXPECT_TRUE(std::holds_alternative<Free>(vote));
}

TEST_F(RedisServerTest, TeachingTheScriptsDoesNotUseUpTheTimeOfTheQuestion) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = drive_.start(acquire(token(), clock_.now() + 1s));
    Peer peer = co_await fake_.accept();
    expect_evalsha(co_await peer.read_command(), scripts::acquire, token());
    clock_.advance(900ms);
    co_await peer.send(std::string(noscript));
    expect_teaching(co_await peer.read_command());
    clock_.advance(900ms);
    co_await peer.send("$-1\r\n");
    expect_evalsha(co_await peer.read_command(), scripts::acquire, token());
    clock_.advance(900ms);
    co_await peer.send(std::string(granted));
    const AcquireVote answer = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Granted>(answer));
  }());
}

constexpr std::string_view wrong_password = "-WRONGPASS invalid username-password pair\r\n";
constexpr std::string_view no_login = "-NOAUTH Authentication required.\r\n";

class RotatedPasswordTest : public RedisServerTest {
 protected:
  RotatedPasswordTest() {
    write("old");
    Endpoint endpoint = fake_.endpoint();
    endpoint.password_file = PasswordFile::open(path_).value();
    server_ = std::make_unique<RedisServer>(drive_.executor(), clock_, endpoint);
  }

  void write(std::string_view password) { std::ofstream(path_) << password << '\n'; }

  Directory directory_;
  std::string path_ = directory_.file("password");
};

TEST_F(RotatedPasswordTest, ASecondRefusalIsFinalUntilTheFileChanges) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = start_acquire();
    Peer peer = co_await fake_.accept();
    co_await peer.read_command();
    co_await peer.read_command();
    co_await peer.send(std::string(wrong_password).append(no_login));
    const AcquireVote denied = co_await vote.get();
    EXPECT_EQ(std::get<Fault>(denied).kind, FaultKind::denied);

    write("new");
    auto next = start_acquire();
    Peer second = co_await fake_.accept();
    co_await second.expect(wire("AUTH new"));
    co_await second.read_command();
    co_await second.send(std::string("+OK\r\n").append(granted));
    const AcquireVote answer = co_await next.get();
    EXPECT_TRUE(std::holds_alternative<Granted>(answer));
  }());
}

TEST_F(RotatedPasswordTest, EachQuestionThatWasRefusedWithTheOldPasswordIsAskedAgain) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = start_acquire();
    auto other = start_inspect();
    Peer peer = co_await fake_.accept();
    co_await peer.expect(wire("AUTH old"));
    co_await peer.read_command();
    co_await peer.read_command();
    co_await peer.expect(wire("ROLE"));
    co_await peer.expect(wire("INFO replication"));
    write("new");
    std::string refusals(wrong_password);
    for (int i = 0; i < 4; ++i) refusals += no_login;
    co_await peer.send(refusals);
    Peer second = co_await fake_.accept();
    co_await second.expect(wire("AUTH new"));
    expect_evalsha(co_await second.read_command(), scripts::acquire, token());
    expect_evalsha(co_await second.read_command(), scripts::inspect);
    co_await second.send(
        std::string("+OK\r\n").append(granted).append(is_free).append(is_master_behind));
    const AcquireVote answer = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Granted>(answer));
    const InspectVote free = co_await other.get();
    EXPECT_TRUE(std::holds_alternative<Free>(free));
  }());
}

TEST_F(RotatedPasswordTest, ThePasswordThatTheServerLearnsAfterTheFileIsTriedAgain) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = start_acquire();
    Peer peer = co_await fake_.accept();
    co_await peer.expect(wire("AUTH old"));
    co_await peer.read_command();
    co_await peer.send(std::string(wrong_password).append(no_login));
    const AcquireVote denied = co_await vote.get();
    EXPECT_EQ(std::get<Fault>(denied).kind, FaultKind::denied);

    auto next = start_acquire();
    Peer second = co_await fake_.accept();
    co_await second.expect(wire("AUTH old"));
    co_await second.read_command();
    co_await second.send(std::string("+OK\r\n").append(granted));
    const AcquireVote answer = co_await next.get();
    EXPECT_TRUE(std::holds_alternative<Granted>(answer));
  }());
}

/// What the default user was let do counts for nothing, and is not asked for again: the server
/// would meet the same token twice.
TEST_F(RotatedPasswordTest, DoesNotAskAgainForWhatWasDoneWithoutTheLogin) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = start_acquire();
    Peer peer = co_await fake_.accept();
    co_await peer.read_command();
    co_await peer.read_command();
    write("new");
    co_await peer.send(std::string(wrong_password).append(granted));
    const AcquireVote answer = co_await vote.get();
    EXPECT_EQ(std::get<Fault>(answer).kind, FaultKind::denied);
  }());
}

TEST_F(RedisServerTest, TakesItForARefusalWhenAServerCannotLearn) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = start_acquire();
    Peer peer = co_await fake_.accept();
    co_await peer.read_command();
    co_await peer.send(std::string(noscript));
    expect_teaching(co_await peer.read_command());
    co_await peer.send("-BUSY Redis is busy running a script.\r\n");
    const AcquireVote answer = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Fault>(answer) && std::get<Fault>(answer).refused);
    server_->undo(resource(), token());
    co_await server_->close(Instant::max());
    co_await peer.expect_end();
  }());
}

/// An attempt and its undo lie in one read of any server, whatever came before it (R3): a server
/// that wakes when we are gone runs both.
TEST_F(RedisServerTest, AnAttemptAndItsUndoAreSmall) {
  static constexpr std::size_t small = 2048;
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = start_acquire();
    Peer peer = co_await fake_.accept();
    std::size_t bytes = EncodedCommand(co_await peer.read_command()).bytes().size();
    server_->undo(resource(), token());
    bytes += EncodedCommand(co_await peer.read_command()).bytes().size();
    bytes += EncodedCommand(co_await peer.read_command()).bytes().size();
    EXPECT_LT(bytes, small);
    co_await peer.send(std::string(granted));
    co_await vote.get();
  }());
}

TEST_F(RedisServerTest, LogsInAsItsEndpointSays) {
  Endpoint endpoint = fake_.endpoint();
  endpoint.user = "alice";
  endpoint.password = "hunter2";
  endpoint.database = 3;
  server_ = std::make_unique<RedisServer>(drive_.executor(), clock_, endpoint);
  EXPECT_EQ(server_->name(), "unix://" + endpoint.path + "?db=3");
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = start_inspect();
    Peer peer = co_await fake_.accept();
    co_await peer.expect(wire("AUTH alice hunter2", "SELECT 3"));
    co_await peer.send(std::string("+OK\r\n+OK\r\n").append(is_free).append(is_master_behind));
    const InspectVote answer = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Free>(answer));
  }());
}

std::string info(std::string_view text) {
  return "$" + std::to_string(text.size()) + "\r\n" + std::string(text) + "\r\n";
}

RedisServerOptions identifying() {
  RedisServerOptions options;
  options.identifies_itself = true;
  return options;
}

class IdentityTest : public RedisServerTest {
 protected:
  IdentityTest() {
    server_ =
        std::make_unique<RedisServer>(drive_.executor(), clock_, fake_.endpoint(), identifying());
  }

  /// What a grant says of a server that answers INFO so.
  ServerFacts facts_after(std::string reply, Duration later = 0s) {
    ServerFacts facts;
    drive_.run([&]() -> asio::awaitable<void> {
      auto vote = start_acquire();
      Peer peer = co_await fake_.accept();
      co_await peer.expect(wire("INFO server"));
      expect_evalsha(co_await peer.read_command(), scripts::acquire, token());
      co_await peer.send(reply + std::string(granted));
      co_await vote.get();
      clock_.advance(later);
      auto again = start_acquire(token('b'));  // on the same connection: nothing is asked anew
      expect_evalsha(co_await peer.read_command(), scripts::acquire);
      co_await peer.send(std::string(granted));
      const AcquireVote answer = co_await again.get();
      EXPECT_TRUE(std::holds_alternative<Granted>(answer));
      if (std::holds_alternative<Granted>(answer)) facts = std::get<Granted>(answer).server;
    }());
    return facts;
  }
};

TEST_F(IdentityTest, TellsWhoTheServerIsAndForHowLongItIsUp) {
  const ServerFacts facts = facts_after(
      info("# Server\r\nrun_id:abc\r\nuptime_in_seconds:40\r\nuptime_in_days:0\r\n"), 30s);
  EXPECT_EQ(facts.run_id, "abc");
  EXPECT_EQ(facts.up, 70s);
}

TEST_F(IdentityTest, KnowsAClockThatWasSetBack) {
  EXPECT_EQ(facts_after(info("uptime_in_seconds:-7\n")).up, -7s);
}

TEST_F(IdentityTest, BelievesNoUptimeThatCannotBe) {
  EXPECT_EQ(facts_after(info("uptime_in_seconds:9223372036854775807\n")).up, 24h * 365 * 100);
}

TEST_F(IdentityTest, LeavesOpenWhatTheServerDoesNotTell) {
  for (const std::string& reply :
       {info("nonsense"), info("run_id:\r\nuptime_in_seconds:1x\r\n"), info(""),
        std::string("-NOPERM this user has no permissions to run the 'info' command\r\n"),
        std::string(":1\r\n")}) {
    server_ =
        std::make_unique<RedisServer>(drive_.executor(), clock_, fake_.endpoint(), identifying());
    const ServerFacts facts = facts_after(reply);
    EXPECT_EQ(facts.run_id, "") << reply;
    EXPECT_FALSE(facts.up) << reply;
  }
}

TEST_F(IdentityTest, AsksAgainWhenTheServerWasBusyForAMoment) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = start_acquire();
    Peer peer = co_await fake_.accept();
    co_await peer.expect(wire("INFO server"));
    co_await peer.read_command();
    co_await peer.send(std::string(busy) + std::string(granted));
    co_await peer.expect(wire("INFO server"));
    co_await peer.send(info("run_id:abc\r\nuptime_in_seconds:40\r\n"));
    const AcquireVote answer = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Granted>(answer));
    EXPECT_EQ(std::get<Granted>(answer).server.run_id, "abc");
    EXPECT_EQ(std::get<Granted>(answer).server.up, 40s);
  }());
}

TEST_F(IdentityTest, GrantsNothingWhileTheServerIsTooBusyToIdentifyItself) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = start_acquire();
    Peer peer = co_await fake_.accept();
    co_await peer.expect(wire("INFO server"));
    co_await peer.read_command();
    co_await peer.send(std::string(busy) + std::string(granted));
    co_await peer.expect(wire("INFO server"));
    co_await peer.send(std::string(busy));
    const AcquireVote answer = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Fault>(answer));
    EXPECT_EQ(std::get<Fault>(answer).kind, FaultKind::unavailable);
    EXPECT_FALSE(std::get<Fault>(answer).refused) << "the lease may be there";
    server_->undo(resource(), token());
    expect_evalsha(co_await peer.read_command(), scripts::release, token());
  }());
}

TEST_F(IdentityTest, AsksAgainOnEveryConnection) {
  drive_.run([this]() -> asio::awaitable<void> {
    for (const std::string run_id : {"one", "two"}) {
      auto vote = start_acquire();
      Peer peer = co_await fake_.accept();
      co_await peer.expect(wire("INFO server"));
      co_await peer.read_command();
      co_await peer.send(info("run_id:" + run_id + "\r\n") + std::string(granted));
      const AcquireVote answer = co_await vote.get();
      EXPECT_EQ(std::get<Granted>(answer).server.run_id, run_id);
      peer.close();
      auto broken = start_inspect();
      co_await broken.get();
    }
  }());
}

TEST_F(IdentityTest, ComesBehindTheLogin) {
  Endpoint endpoint = fake_.endpoint();
  endpoint.password = "hunter2";
  endpoint.database = 3;
  server_ = std::make_unique<RedisServer>(drive_.executor(), clock_, endpoint, identifying());
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = start_inspect();
    Peer peer = co_await fake_.accept();
    co_await peer.expect(wire("AUTH hunter2", "SELECT 3", "INFO server"));
    co_await peer.send("+OK\r\n+OK\r\n" + info("run_id:abc") +
                       std::string(is_free).append(is_master_behind));
    const InspectVote answer = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Free>(answer));
  }());
}

class ReplicasTest : public RedisServerTest {
 protected:
  ReplicasTest() {
    RedisServerOptions options;
    options.replicas = 2;
    server_ = std::make_unique<RedisServer>(drive_.executor(), clock_, fake_.endpoint(), options);
  }

  /// What an acquire comes to when WAIT answers so.
  AcquireVote vote_after(std::string reply) {
    std::optional<AcquireVote> vote;
    drive_.run([&]() -> asio::awaitable<void> {
      auto asked = drive_.start(acquire(token(), clock_.now() + 400ms));
      Peer peer = co_await fake_.accept();
      expect_evalsha(co_await peer.read_command(), scripts::acquire, token());
      co_await peer.send(std::string(granted));
      co_await peer.expect(wire("WAIT 2 300"));
      co_await peer.send(reply);
      vote = co_await asked.get();
    }());
    return *vote;
  }
};

TEST_F(ReplicasTest, MustConfirmAGrant) {
  EXPECT_TRUE(std::holds_alternative<Granted>(vote_after(":2\r\n")));
}

TEST_F(ReplicasTest, HaveAsLongAsTheGrantThatTookLong) {
  drive_.run([&]() -> asio::awaitable<void> {
    auto vote = drive_.start(acquire(token(), clock_.now() + 400ms));
    Peer peer = co_await fake_.accept();
    expect_evalsha(co_await peer.read_command(), scripts::acquire, token());
    clock_.advance(390ms);
    co_await peer.send(std::string(granted));
    co_await peer.expect(wire("WAIT 2 300"));
    clock_.advance(390ms);
    co_await peer.send(":2\r\n");
    const AcquireVote answer = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Granted>(answer));
  }());
}

TEST_F(ReplicasTest, WithoutThemAGrantIsNone) {
  const AcquireVote vote = vote_after(":1\r\n");
  ASSERT_TRUE(std::holds_alternative<Fault>(vote));
  EXPECT_EQ(std::get<Fault>(vote).kind, FaultKind::unavailable);
  EXPECT_EQ(std::get<Fault>(vote).text,
            "only 1 of the 2 replicas that --replicas needs have confirmed it in time");
}

TEST_F(ReplicasTest, AreNotAskedForWhenWaitIsDenied) {
  const AcquireVote vote =
      vote_after("-NOPERM this user has no permissions to run the 'wait' command\r\n");
  ASSERT_TRUE(std::holds_alternative<Fault>(vote));
  EXPECT_EQ(std::get<Fault>(vote).kind, FaultKind::denied);
}

TEST_F(ReplicasTest, DoNotMatterToARefusal) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = start_acquire();
    Peer peer = co_await fake_.accept();
    co_await peer.read_command();
    co_await peer.send(std::string(held));
    const AcquireVote answer = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Held>(answer));
    co_await server_->close(Instant::max());
    co_await peer.expect_end();
  }());
}

TEST_F(ReplicasTest, MustConfirmAnExtension) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = drive_.start(
        server_->extend(ExtendRequest{resource(), token(), ttl()}, clock_.now() + 1ms));
    Peer peer = co_await fake_.accept();
    co_await peer.read_command();
    co_await peer.send(
        "*9\r\n$8\r\nextended\r\n$2\r\nid\r\n$6\r\nstring\r\n:9\r\n:1\r\n$1\r\n7\r\n:1\r\n:0\r\n$"
        "0\r\n\r\n");
    co_await peer.expect(wire("WAIT 2 1"));  // never 0
    co_await peer.send(":0\r\n");
    const ExtendVote answer = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Fault>(answer));
  }());
}

TEST_F(ReplicasTest, TheConnectionStaysUntilWhatIsBehindTheWaitIsAnswered) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = drive_.start(acquire(token(), clock_.now() + 400ms));
    Peer peer = co_await fake_.accept();
    co_await peer.read_command();
    co_await peer.send(std::string(granted));
    co_await peer.expect(wire("WAIT 2 300"));
    // Another quorum was faster, and it is over already.
    server_->undo(resource(), token());
    auto closed = drive_.start(server_->close(clock_.now()));
    expect_evalsha(co_await peer.read_command(), scripts::release, token());
    expect_undo(co_await peer.read_command(), token());
    auto end = drive_.start([](Peer& side) -> asio::awaitable<bool> {
      co_await side.expect_end();
      co_return true;
    }(peer));
    EXPECT_FALSE(closed.ready());
    EXPECT_FALSE(end.ready());
    co_await peer.send(":2\r\n*2\r\n$8\r\nreleased\r\n:0\r\n:1\r\n");
    co_await end.get();
    peer.close();
    co_await closed.get();
    co_await vote.get();
  }());
}

TEST_F(RedisServerTest, AsksAgainAfterALateAnswerAndUndoesOnTheLateConnection) {
  drive_.run([this]() -> asio::awaitable<void> {
    Peer first = co_await late_on_new_connection(token('a'));

    auto vote = start_acquire(token('b'));
    Peer second = co_await fake_.accept();
    expect_evalsha(co_await second.read_command(), scripts::acquire, token('b'));
    co_await second.send(std::string(granted));
    const AcquireVote answer = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Granted>(answer));

    server_->undo(resource(), token('a'));
    server_->undo(resource(), token('a'));  // once is enough
    auto closed = drive_.start(server_->close(Instant::max()));
    expect_evalsha(co_await first.read_command(), scripts::release, token('a'));
    expect_undo(co_await first.read_command(), token('a'));
    co_await first.expect_end();
    first.close();
    co_await second.expect_end();
    co_await closed.get();
  }());
}

TEST_F(RedisServerTest, DoesNotResendWhatWasUndone) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = start_acquire();
    Peer peer = co_await fake_.accept();
    expect_evalsha(co_await peer.read_command(), scripts::acquire, token());
    server_->undo(resource(), token());
    expect_evalsha(co_await peer.read_command(), scripts::release, token());
    expect_undo(co_await peer.read_command(), token());
    // The server does not know the script: the compare-and-delete came first, so the acquire must
    // not follow.
    co_await peer.send(std::string(noscript) + std::string(noscript) + ":1\r\n");
    expect_teaching(co_await peer.read_command());
    co_await peer.send("$-1\r\n");
    const AcquireVote answer = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Fault>(answer));
    co_await server_->close(Instant::max());
    co_await peer.expect_end();
  }());
}

TEST_F(RedisServerTest, DoesNotSendAgainWhatWasReleased) {
  drive_.run([this]() -> asio::awaitable<void> {
    // A quorum of others granted, and all is over before this server has answered.
    auto vote = start_acquire();
    Peer peer = co_await fake_.accept();
    expect_evalsha(co_await peer.read_command(), scripts::acquire, token());
    auto released = drive_.start(server_->release(
        ReleaseRequest{resource(), token(), false, Duration::zero()}, Instant::max()));
    expect_evalsha(co_await peer.read_command(), scripts::release, token());
    co_await peer.send(std::string(noscript) + std::string(noscript));
    expect_teaching(co_await peer.read_command());
    expect_teaching(co_await peer.read_command());
    co_await peer.send("$-1\r\n$-1\r\n");
    expect_evalsha(co_await peer.read_command(), scripts::release, token());
    co_await peer.send(std::string(gone));
    const AcquireVote answer = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Fault>(answer));
    co_await released.get();
    co_await server_->close(Instant::max());
    co_await peer.expect_end();
  }());
}

/// What becomes of an undo, as the caller is told.
class UndoTest : public RedisServerTest {
 protected:
  asio::awaitable<Peer> undone_on_new_connection() {
    Peer peer = co_await granted_on_new_connection();
    server_->undo(resource(), token(), std::nullopt, [this] { ++not_undone_; });
    expect_evalsha(co_await peer.read_command(), scripts::release, token());
    expect_undo(co_await peer.read_command(), token());
    co_return peer;
  }

  /// How often it was told that it is not undone, when the server answers so and then all is
  /// closed.
  int after(std::string replies) {
    drive_.run([&, this]() -> asio::awaitable<void> {
      Peer peer = co_await undone_on_new_connection();
      co_await peer.send(replies);
      auto closed = drive_.start(server_->close(Instant::max()));
      co_await peer.expect_end();
      peer.close();
      co_await closed.get();
    }());
    return not_undone_;
  }

  int not_undone_ = 0;
};

TEST_F(UndoTest, IsDoneWhenTheServerSaysSo) {
  EXPECT_EQ(after(std::string(gone) + ":1\r\n"), 0);
}
TEST_F(UndoTest, IsDoneByItsOwnTextWhereTheScriptsWereForgotten) {
  EXPECT_EQ(after(std::string(noscript) + ":1\r\n"), 0);
}
TEST_F(UndoTest, IsNotDoneWhenTheServerRefusesIt) {
  EXPECT_EQ(after("-BUSY Redis is busy\r\n-BUSY Redis is busy\r\n"), 1);
}
TEST_F(UndoTest, IsNotDoneWhenTheScriptsWereForgottenAndItIsRefused) {
  EXPECT_EQ(after(std::string(noscript) + "-MISCONF Errors writing to the AOF file\r\n"), 1);
}
TEST_F(UndoTest, MayNotBeDoneWhenTheConnectionBreaks) {
  EXPECT_EQ(after(""), 1);
}

TEST_F(UndoTest, MayNotBeDoneWhenTheServerThatGrantedIsSilent) {
  drive_.run([this]() -> asio::awaitable<void> {
    Peer peer = co_await undone_on_new_connection();
    co_await server_->close(clock_.now());
    co_await peer.expect_end();
  }());
  EXPECT_EQ(not_undone_, 1);
}

TEST_F(UndoTest, MayNotBeDoneWhenTheConnectionThatWasToDoItDoesNotOpen) {
  drive_.run([this]() -> asio::awaitable<void> {
    Peer peer = co_await granted_on_new_connection();
    auto unanswered = start_inspect();
    co_await peer.read_command();
    peer.close();
    co_await unanswered.get();
    fake_.stop();
    server_->undo(resource(), token(), std::nullopt, [this] { ++not_undone_; });
    auto refused = start_inspect();
    co_await refused.get();
    co_await server_->close(Instant::max());
  }());
  EXPECT_EQ(not_undone_, 1);
}

TEST_F(UndoTest, IsNotLostWithAConnectionThatInheritedItAndDidNotOpen) {
  drive_.run([this]() -> asio::awaitable<void> {
    Peer peer = co_await granted_on_new_connection();
    auto unanswered = start_inspect();
    co_await peer.read_command();
    peer.close();
    co_await unanswered.get();
    fake_.stop();
    auto refused = start_inspect();
    co_await refused.get();
    server_->undo(resource(), token(), std::nullopt, [this] { ++not_undone_; });
    auto refused_again = start_inspect();
    co_await refused_again.get();
    co_await server_->close(Instant::max());
  }());
  EXPECT_EQ(not_undone_, 1);
}

TEST_F(UndoTest, IsNotLostWithASilentConnectionThatIsGivenUp) {
  drive_.run([this]() -> asio::awaitable<void> {
    std::vector<Peer> peers;
    for (const char digit : std::string_view("012345")) {
      peers.push_back(co_await late_on_new_connection(token(digit)));
    }
    // The first was given up with its attempt on it, so the undo goes over the newest.
    co_await peers[0].expect_end();
    server_->undo(resource(), token('0'), std::nullopt, [this] { ++not_undone_; });
    expect_evalsha(co_await peers.back().read_command(), scripts::release, token('0'));
    expect_undo(co_await peers.back().read_command(), token('0'));
    co_await server_->close(clock_.now());
  }());
  EXPECT_EQ(not_undone_, 1) << "it is unknown whether the server read it";
}

TEST_F(UndoTest, LiesBehindTheAcquireAtAServerThatNeverAnswered) {
  drive_.run([this]() -> asio::awaitable<void> {
    Peer peer = co_await late_on_new_connection();
    server_->undo(resource(), token(), std::nullopt, [this] { ++not_undone_; });
    co_await server_->close(clock_.now());
    co_await peer.read_command();
    co_await peer.read_command();
    co_await peer.expect_end();
  }());
  EXPECT_EQ(not_undone_, 0);
}

TEST_F(UndoTest, MayBeCutOffBehindAnother) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto first = drive_.start(
        server_->acquire(AcquireRequest{resource(), token('0'), ttl(), {}}, clock_.now() + 1s));
    Peer peer = co_await fake_.accept();
    co_await peer.read_command();
    server_->undo(resource(), token('0'), std::nullopt,
                  [] { ADD_FAILURE() << "it lies in one read"; });
    co_await peer.read_command();
    co_await peer.read_command();
    auto second = drive_.start(
        server_->acquire(AcquireRequest{resource(), token('1'), ttl(), {}}, clock_.now() + 1s));
    co_await peer.read_command();
    server_->undo(resource(), token('1'), std::nullopt, [this] { ++not_undone_; });
    co_await server_->close(clock_.now());
    co_await first.get();
    co_await second.get();
  }());
  EXPECT_EQ(not_undone_, 1);
}

TEST_F(UndoTest, MayBeCutOffFromALongAttempt) {
  const Resource longest = Resource::from(std::string(Resource::max_bytes, 'k')).value();
  drive_.run([&, this]() -> asio::awaitable<void> {
    auto vote = drive_.start(
        server_->acquire(AcquireRequest{longest, token(), ttl(), {}}, clock_.now() + 1s));
    Peer peer = co_await fake_.accept();
    co_await peer.read_command();
    clock_.advance(1s);
    co_await vote.get();
    server_->undo(longest, token(), std::nullopt, [this] { ++not_undone_; });
    EXPECT_EQ(not_undone_, 0) << "the connection still carries it";
    co_await server_->close(clock_.now());
  }());
  EXPECT_EQ(not_undone_, 1);
}

TEST_F(RedisServerTest, TakesNothingOfALongAttemptBackWhereNothingArrived) {
  const Resource longest = Resource::from(std::string(Resource::max_bytes, 'k')).value();
  fake_.stop();
  int not_undone = 0;
  drive_.run([&, this]() -> asio::awaitable<void> {
    for (int i = 0; i < 10; ++i) {
      AcquireRequest request{longest, token(), ttl(), {}};
      co_await server_->acquire(request, clock_.now() + 1s);
      server_->undo(longest, token(), std::nullopt, [&] { ++not_undone; });
    }
    co_await server_->close(clock_.now());
  }());
  EXPECT_EQ(not_undone, 0);
}

TEST_F(RedisServerTest, UndoesOverAnotherConnectionWhatABrokenOneCarried) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = start_acquire();
    {
      Peer peer = co_await fake_.accept();
      expect_evalsha(co_await peer.read_command(), scripts::acquire, token());
    }  // and no answer
    const AcquireVote answer = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Fault>(answer));

    server_->undo(resource(), token());
    auto closed = drive_.start(server_->close(Instant::max()));
    Peer peer = co_await fake_.accept();
    expect_evalsha(co_await peer.read_command(), scripts::release, token());
    expect_undo(co_await peer.read_command(), token());
    co_await peer.expect_end();
    peer.close();
    co_await closed.get();
  }());
}

TEST_F(RedisServerTest, UndoesOverAnotherConnectionWhatWasGrantedBeforeItBroke) {
  drive_.run([this]() -> asio::awaitable<void> {
    Peer broken = co_await granted_on_new_connection();
    auto unanswered = start_inspect();
    co_await broken.read_command();
    broken.close();
    co_await unanswered.get();

    auto vote = start_inspect();
    Peer peer = co_await fake_.accept();
    co_await peer.read_command();
    co_await peer.expect(wire("ROLE", "INFO replication"));
    co_await peer.send(std::string(is_free).append(is_master_behind));
    co_await vote.get();

    server_->undo(resource(), token());
    expect_evalsha(co_await peer.read_command(), scripts::release, token());
    expect_undo(co_await peer.read_command(), token());
  }());
}

TEST_F(RedisServerTest, ReleasesWhereItMayStillBeAcquired) {
  drive_.run([this]() -> asio::awaitable<void> {
    Peer first = co_await late_on_new_connection();
    auto released = drive_.start(server_->release(
        ReleaseRequest{resource(), token(), false, Duration::zero()}, Instant::max()));
    Peer second = co_await fake_.accept();
    expect_evalsha(co_await first.read_command(), scripts::release, token());
    expect_undo(co_await first.read_command(), token());
    expect_evalsha(co_await second.read_command(), scripts::release, token());
    co_await second.send(std::string(gone));
    const ReleaseVote vote = co_await released.get();
    EXPECT_TRUE(std::holds_alternative<NotOurs>(vote));
  }());
}

TEST_F(RedisServerTest, ReleasesWithTheSameArgumentsWhereItMayStillBeAcquired) {
  drive_.run([this]() -> asio::awaitable<void> {
    Peer first = co_await late_on_new_connection();
    ReleaseRequest request{resource(), token(), /*by_hand=*/false, std::chrono::seconds(9)};
    request.finished = Owner();
    request.run = RunRecord();
    auto released = drive_.start(server_->release(request, Instant::max()));
    Peer second = co_await fake_.accept();
    const auto late = co_await first.read_command();
    const auto counted = co_await second.read_command();
    EXPECT_EQ(late, counted);
    co_await second.send(std::string(gone));
    co_await released.get();
  }());
}

TEST_F(RedisServerTest, SendsNoUndoBehindAReleaseThatMayLeaveTheLeaseToUsers) {
  drive_.run([this]() -> asio::awaitable<void> {
    Peer first = co_await late_on_new_connection();
    ReleaseRequest request{resource(), token()};
    request.may_have_users = true;
    auto released = drive_.start(server_->release(request, Instant::max()));
    Peer second = co_await fake_.accept();
    expect_evalsha(co_await first.read_command(), scripts::release, token());
    co_await second.read_command();
    co_await second.send(std::string(gone));
    co_await released.get();
    co_await server_->close(clock_.now());
    co_await first.expect_end();
  }());
}

TEST_F(RedisServerTest, EndsTheUseWhereItMayStillBeRenewed) {
  drive_.run([this]() -> asio::awaitable<void> {
    ExtendRequest renewal{resource(), token(), ttl()};
    renewal.user = LeaseUser{"u1", "{}"};
    auto vote = drive_.start(server_->extend(renewal, clock_.now() + 1s));
    Peer first = co_await fake_.accept();
    co_await first.read_command();
    clock_.advance(1s);
    const ExtendVote answer = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Fault>(answer));

    ReleaseRequest request{resource(), token()};
    request.user = renewal.user->id;
    auto released = drive_.start(server_->release(request, Instant::max()));
    Peer second = co_await fake_.accept();
    const auto late = co_await first.read_command();
    const auto counted = co_await second.read_command();
    EXPECT_EQ(late, counted);
    co_await second.send(std::string(gone));
    co_await released.get();
    co_await server_->close(clock_.now());
    co_await first.expect_end();
  }());
}

TEST_F(RedisServerTest, DoesNotTakeBackWhatWasRefused) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto vote = start_acquire();
    Peer peer = co_await fake_.accept();
    co_await peer.read_command();
    co_await peer.send(std::string(held));
    const AcquireVote answer = co_await vote.get();
    EXPECT_TRUE(std::holds_alternative<Held>(answer));
    server_->undo(resource(), token());
    co_await server_->close(Instant::max());
    co_await peer.expect_end();
  }());
}

TEST_F(RedisServerTest, TakesNothingBackWhereNothingArrived) {
  Endpoint later = fake_.endpoint();
  later.path += "2";
  server_ = std::make_unique<RedisServer>(drive_.executor(), clock_, later);
  drive_.run([&, this]() -> asio::awaitable<void> {
    const AcquireVote vote = co_await acquire(token(), Instant::max());
    EXPECT_TRUE(std::holds_alternative<Fault>(vote));
    asio::local::stream_protocol::acceptor now_there(
        drive_.executor(), asio::local::stream_protocol::endpoint(later.path));
    server_->undo(resource(), token());
    co_await server_->close(Instant::max());
    now_there.non_blocking(true);
    asio::local::stream_protocol::socket socket(drive_.executor());
    asio::error_code error;
    now_there.accept(socket, error);
    EXPECT_EQ(error, asio::error::would_block);
  }());
}

TEST_F(RedisServerTest, TakesNothingBackThatItDidNotAsk) {
  server_->undo(resource(), token());
  drive_.run(server_->close(Instant::max()));
  EXPECT_FALSE(fake_.is_called());
}

TEST_F(RedisServerTest, DoesNotCollectSilentConnections) {
  drive_.run([this]() -> asio::awaitable<void> {
    std::vector<Peer> peers;
    for (const char digit : std::string_view("0123456")) {
      peers.push_back(co_await late_on_new_connection(token(digit)));
      server_->undo(resource(), token(digit));
    }
    // The oldest were given up, with everything in them.
    expect_evalsha(co_await peers[0].read_command(), scripts::release, token('0'));
    expect_undo(co_await peers[0].read_command(), token('0'));
    co_await peers[0].expect_end();
    co_await server_->close(clock_.now());
    for (std::size_t i = 1; i < peers.size(); ++i) {
      co_await peers[i].read_command();
      co_await peers[i].read_command();
      co_await peers[i].expect_end();
    }
  }());
}

TEST_F(RedisServerTest, ListsEveryPageOnce) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto listed = drive_.start(server_->list({.answer_timeout = timeout}));
    Peer peer = co_await fake_.accept();
    co_await peer.expect(wire("SCAN 0 MATCH redlock:owner:{* COUNT 512"));
    co_await peer.send(
        "*2\r\n$2\r\n17\r\n*3\r\n$17\r\nredlock:owner:{b}\r\n$17\r\nredlock:owner:{a}\r\n$"
        "17\r\nredlock:owner:x}y\r\n");
    co_await peer.expect(wire("SCAN 17 MATCH redlock:owner:{* COUNT 512"));
    co_await peer.send("*2\r\n$1\r\n0\r\n*1\r\n$17\r\nredlock:owner:{b}\r\n");
    co_await peer.expect(wire("ROLE", "INFO replication"));
    co_await peer.send(std::string(is_master_behind));
    const auto list = co_await listed.get();
    if (!list) {
      ADD_FAILURE() << list.error().text;
      co_return;
    }
    EXPECT_EQ(list->resources.size(), 2U);
    EXPECT_EQ(list->resources.front().key(), "a");
    EXPECT_EQ(list->resources.back().key(), "b");
  }());
}

TEST_F(RedisServerTest, EachPageOfAListHasItsTime) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto listed = drive_.start(server_->list({.answer_timeout = 1s}));
    Peer peer = co_await fake_.accept();
    int cursor = 0;
    for (int page = 0; page < 3; ++page) {
      co_await peer.expect(
          wire("SCAN " + std::to_string(cursor) + " MATCH redlock:owner:{* COUNT 512"));
      clock_.advance(900ms);
      cursor = cursor == 0 ? 17 : cursor + 1;
      co_await peer.send("*2\r\n$2\r\n" + std::to_string(cursor) + "\r\n*0\r\n");
    }
    co_await peer.expect(wire("SCAN 19 MATCH redlock:owner:{* COUNT 512"));
    clock_.advance(1s);
    const auto list = co_await listed.get();
    EXPECT_FALSE(list);
    if (list) co_return;
    EXPECT_EQ(list.error().text, "no answer within 1s, after about 1536 keys");
  }());
}

TEST_F(RedisServerTest, AListWhoseCursorStandsStillEnds) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto listed = drive_.start(server_->list({.answer_timeout = 1s}));
    Peer peer = co_await fake_.accept();
    for (int page = 0; page < 2; ++page) {
      EXPECT_EQ((co_await peer.read_command()).at(0), "SCAN");
      co_await peer.send("*2\r\n$2\r\n17\r\n*0\r\n");
    }
    const auto list = co_await listed.get();
    EXPECT_FALSE(list);
    if (list) co_return;
    EXPECT_EQ(list.error().kind, FaultKind::garbage);
    EXPECT_EQ(list.error().text, "its list of keys (SCAN) does not end, after about 1024 keys");
  }());
}

TEST_F(RedisServerTest, AListTellsHowFarItHasCome) {
  drive_.run([this]() -> asio::awaitable<void> {
    std::vector<ListProgress> told;
    ListRequest request{.prefix = "job*", .answer_timeout = 1s, .wants_other_key = true};
    request.progress = [&told](const ListProgress& progress) { told.push_back(progress); };
    auto listed = drive_.start(server_->list(request));
    Peer peer = co_await fake_.accept();
    co_await peer.expect(wire("SCAN 0 MATCH redlock:owner:{*job\\** COUNT 512"));
    co_await peer.send("*2\r\n$2\r\n17\r\n*0\r\n");
    co_await peer.expect(wire("DBSIZE"));
    co_await peer.send(":1000\r\n");
    co_await peer.expect(wire("SCAN 17 MATCH redlock:owner:{*job\\** COUNT 512"));
    co_await peer.send("*2\r\n$1\r\n0\r\n*0\r\n");
    co_await peer.expect(wire("SCAN 0 MATCH * COUNT 512"));
    co_await peer.send("*2\r\n$1\r\n9\r\n*2\r\n$9\r\nredlock:x\r\n$5\r\nusers\r\n");
    co_await peer.expect(wire("ROLE", "INFO replication"));
    co_await peer.send(std::string(is_master_behind));
    const auto list = co_await listed.get();
    EXPECT_TRUE(list && list->other_key == "users");
    EXPECT_EQ(told.size(), 1U);
    if (told.empty()) co_return;
    EXPECT_EQ(told[0].keys, 512U);
    EXPECT_EQ(told[0].of, 1000U);
  }());
}

TEST_F(RedisServerTest, AListThatIsCutShortHasWhatWasFound) {
  drive_.run([this]() -> asio::awaitable<void> {
    auto listed =
        drive_.start(server_->list({.answer_timeout = 1s, .until = clock_.now() + 500ms}));
    Peer peer = co_await fake_.accept();
    co_await peer.read_command();
    co_await peer.send("*2\r\n$2\r\n17\r\n*1\r\n$17\r\nredlock:owner:{b}\r\n");
    co_await peer.read_command();
    clock_.advance(500ms);
    const auto list = co_await listed.get();
    EXPECT_TRUE(list && list->resources.size() == 1);
  }());
}

TEST_F(RedisServerTest, ListsNothingFromWhatNoScanAnswers) {
  for (const std::string bytes : {"+OK\r\n", "*0\r\n", "*2\r\n:0\r\n*0\r\n",
                                  "*2\r\n$1\r\n0\r\n$1\r\n0\r\n", "*1\r\n$1\r\n0\r\n"}) {
    server_ = make_server();
    drive_.run([&, this]() -> asio::awaitable<void> {
      auto listed = drive_.start(server_->list({.answer_timeout = timeout}));
      Peer peer = co_await fake_.accept();
      co_await peer.send(bytes);
      const auto resources = co_await listed.get();
      EXPECT_FALSE(resources.has_value()) << bytes;
      if (!resources) {
        EXPECT_EQ(resources.error().kind, FaultKind::garbage);
      }
    }());
  }
}

}  // namespace
}  // namespace redlock::redis
