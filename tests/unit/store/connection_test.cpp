#include "store/redis/connection.hpp"

#include "fake_server.hpp"

namespace redlock::redis {
namespace {

using namespace testing;

using Answer = Result<Reply, Fault>;
using Commands = std::vector<Command>;

/// Hands everything on, and notes what was written at once.
class RecordingTransport final : public Transport {
 public:
  RecordingTransport(std::unique_ptr<Transport> inner, std::vector<std::string>& writes)
      : inner_(std::move(inner)), writes_(writes) {}

  asio::awaitable<std::optional<Fault>> open(Instant deadline) override {
    return inner_->open(deadline);
  }
  asio::awaitable<std::size_t> read_some(asio::mutable_buffer buffer,
                                         asio::error_code& error) override {
    return inner_->read_some(buffer, error);
  }
  asio::awaitable<void> write(asio::const_buffer buffer, asio::error_code& error) override {
    writes_.emplace_back(static_cast<const char*>(buffer.data()), buffer.size());
    return inner_->write(buffer, error);
  }
  std::size_t try_write(asio::const_buffer buffer) override {
    writes_.emplace_back(static_cast<const char*>(buffer.data()), buffer.size());
    return inner_->try_write(buffer);
  }
  void end_sending() override { inner_->end_sending(); }
  void close() override { inner_->close(); }
  [[nodiscard]] std::string awaited() const override { return inner_->awaited(); }
  [[nodiscard]] Fault explain(const asio::error_code& error) const override {
    return inner_->explain(error);
  }
  [[nodiscard]] bool stays_on_this_host() const override { return inner_->stays_on_this_host(); }

 private:
  std::unique_ptr<Transport> inner_;
  std::vector<std::string>& writes_;
};

class ConnectionTest : public ::testing::Test {
 protected:
  template <class... Lines>
  std::shared_ptr<Connection> connect(Lines... login) {
    auto transport = std::make_unique<RecordingTransport>(
        make_plain_transport(drive_.executor(), clock_, server_.endpoint()), writes_);
    auto connection = std::make_shared<Connection>(drive_.executor(), clock_, std::move(transport),
                                                   Commands{words(login)...});
    connection->start(Instant::max());
    return connection;
  }

  Eventual<Answer> ask(const std::shared_ptr<Connection>& connection, std::string_view line) {
    return ask(connection, line, Instant::max());
  }
  Eventual<Answer> ask(const std::shared_ptr<Connection>& connection, std::string_view line,
                       Instant deadline) {
    return drive_.start(connection->request(words(line), ReplyLimits{}, deadline));
  }

  /// A first exchange, so that the connection is open for sure.
  asio::awaitable<Peer> opened(const std::shared_ptr<Connection>& connection) {
    auto pong = ask(connection, "PING");
    Peer peer = co_await server_.accept();
    co_await peer.expect(wire("PING"));
    co_await peer.send("+PONG\r\n");
    const Answer answer = co_await pong.get();
    EXPECT_TRUE(answer.has_value());
    co_return peer;
  }

  Drive drive_;
  ManualClock clock_{drive_.clock()};
  FakeServer server_{drive_};
  std::vector<std::string> writes_;
};

void expect_text(const Answer& answer, const std::string& text) {
  if (!answer) {
    ADD_FAILURE() << answer.error().text;
    return;
  }
  EXPECT_EQ(answer->text, text);
}

void expect_fault(const Answer& answer, FaultKind kind, const std::string& says) {
  if (answer) {
    ADD_FAILURE() << "an answer: " << answer->text;
    return;
  }
  EXPECT_EQ(answer.error().kind, kind) << answer.error().text;
  EXPECT_NE(answer.error().text.find(says), std::string::npos) << answer.error().text;
}

TEST_F(ConnectionTest, SendsTheLoginAndTheFirstCommandInOneWrite) {
  drive_.run([this]() -> asio::awaitable<void> {
    const auto connection = connect("AUTH alice hunter2", "SELECT 2");
    auto answer = ask(connection, "EVAL 1");
    Peer peer = co_await server_.accept();
    const std::string all = wire("AUTH alice hunter2", "SELECT 2", "EVAL 1");
    co_await peer.expect(all);
    EXPECT_EQ(writes_, std::vector(1, all));
    co_await peer.send("+OK\r\n+OK\r\n$3\r\none\r\n");
    expect_text(co_await answer.get(), "one");
    EXPECT_TRUE(connection->usable());
  }());
}

TEST_F(ConnectionTest, AnswersWithTheLoginsFault) {
  drive_.run([this]() -> asio::awaitable<void> {
    const auto connection = connect("AUTH wrong");
    auto first = ask(connection, "EVAL 1");
    auto second = ask(connection, "EVAL 2");
    Peer peer = co_await server_.accept();
    co_await peer.expect(wire("AUTH wrong", "EVAL 1", "EVAL 2"));
    co_await peer.send(
        "-WRONGPASS invalid username-password pair\r\n$7\r\ngranted\r\n-NOAUTH Authentication "
        "required.\r\n");
    expect_fault(co_await first.get(), FaultKind::denied, "wrong user or password");
    expect_fault(co_await second.get(), FaultKind::denied, "wrong user or password");
  }());
}

TEST_F(ConnectionTest, AnswersWithTheFirstFaultOfTheLogin) {
  drive_.run([this]() -> asio::awaitable<void> {
    const auto connection = connect("AUTH wrong", "SELECT 99");
    auto answer = ask(connection, "EVAL 1");
    Peer peer = co_await server_.accept();
    co_await peer.send("-WRONGPASS no\r\n-ERR DB index is out of range\r\n");
    peer.close();
    expect_fault(co_await answer.get(), FaultKind::denied, "wrong user or password");
  }());
}

TEST_F(ConnectionTest, HandsOnErrorReplies) {
  drive_.run([this]() -> asio::awaitable<void> {
    const auto connection = connect();
    auto answer = ask(connection, "EVALSHA");
    Peer peer = co_await server_.accept();
    co_await peer.send("-NOSCRIPT No matching script.\r\n");
    const Answer reply = co_await answer.get();
    expect_text(reply, "NOSCRIPT No matching script.");
    EXPECT_EQ(reply->type, Reply::Type::error);
    EXPECT_TRUE(connection->usable());
  }());
}

TEST_F(ConnectionTest, PassesALateAnswerOnToWhoWantsIt) {
  drive_.run([this]() -> asio::awaitable<void> {
    const auto connection = connect();
    Peer peer = co_await opened(connection);
    std::vector<std::string> late;
    const Connection::Answered note = [&late](const Result<Reply, Fault>& reply) {
      late.push_back(reply ? reply->text : reply.error().text);
    };
    auto answer = drive_.start(
        connection->request(words("EVAL late"), ReplyLimits{}, clock_.now() + 1s, note));
    co_await peer.expect(wire("EVAL late"));
    clock_.advance(1s);
    expect_fault(co_await answer.get(), FaultKind::silent, "no answer within 1s");
    EXPECT_TRUE(late.empty());
    EXPECT_FALSE(connection->usable());
    co_await peer.send("$3\r\none\r\n");
    peer.close();
    auto gone = ask(connection, "PING");
    co_await gone.get();
    EXPECT_EQ(late, std::vector<std::string>{"one"});
  }());
}

TEST_F(ConnectionTest, IsNotToBeUsedAfterALateAnswer) {
  drive_.run([this]() -> asio::awaitable<void> {
    const auto connection = connect();
    Peer peer = co_await opened(connection);
    auto late = ask(connection, "EVAL late", clock_.now() + 1s);
    clock_.advance(999ms);
    auto other = ask(connection, "EVAL other");
    co_await peer.expect(wire("EVAL late", "EVAL other"));
    EXPECT_FALSE(late.ready());
    EXPECT_TRUE(connection->usable());
    clock_.advance(1ms);
    expect_fault(co_await late.get(), FaultKind::silent, "no answer within 1s");
    EXPECT_FALSE(connection->usable());
    EXPECT_FALSE(connection->broken());

    // What is posted still arrives, behind what was late.
    connection->post(words("EVAL undo"));
    co_await peer.expect(wire("EVAL undo"));
    co_await peer.send("$7\r\ngranted\r\n$5\r\nother\r\n");
    expect_text(co_await other.get(), "other");  // asked before, so it is no old answer
    auto closed = drive_.start(connection->close(Instant::max()));
    co_await peer.expect_end();
    peer.close();
    co_await closed.get();
    EXPECT_FALSE(connection->usable());
  }());
}

TEST_F(ConnectionTest, ConnectingDoesNotUseUpTheTimeOfTheAnswer) {
  drive_.run([this]() -> asio::awaitable<void> {
    const auto connection = connect();
    auto far = ask(connection, "EVAL far", clock_.now() + 1s);
    clock_.advance(900ms);  // the connection opens now
    Peer peer = co_await server_.accept();
    co_await peer.expect(wire("EVAL far"));
    clock_.advance(900ms);
    EXPECT_FALSE(far.ready());
    co_await peer.send("$3\r\nfar\r\n");
    expect_text(co_await far.get(), "far");
  }());
}

TEST_F(ConnectionTest, NamesTheServerTimeoutAlsoWhereOnlyARestOfItWasLeft) {
  drive_.run([this]() -> asio::awaitable<void> {
    const auto connection = connect();
    connection->set_server_timeout(1s);
    Peer peer = co_await opened(connection);
    auto whole = ask(connection, "EVAL whole", clock_.now() + 1s);
    auto rest = ask(connection, "EVAL rest", clock_.now() + 40ms);
    clock_.advance(1s);
    expect_fault(co_await whole.get(), FaultKind::silent, "no answer within 1s (--server-timeout)");
    expect_fault(co_await rest.get(), FaultKind::silent,
                 "no answer in what was left of 1s (--server-timeout)");
  }());
}

TEST_F(ConnectionTest, DoesNotCountAnAnswerThatIsHalfThereInTime) {
  drive_.run([this]() -> asio::awaitable<void> {
    const auto connection = connect();
    Peer peer = co_await opened(connection);
    auto late = ask(connection, "EVAL late", clock_.now() + 1s);
    co_await peer.expect(wire("EVAL late"));
    co_await peer.send("*3\r\n$7\r\ngranted\r\n$2\r\n4");
    clock_.advance(1s);
    const Answer answer = co_await late.get();
    EXPECT_FALSE(answer.has_value());
    EXPECT_FALSE(connection->usable());
  }());
}

TEST_F(ConnectionTest, SaysWhetherItWasTheConnectThatTookTooLong) {
  // The deadline has passed before the connection runs.
  const auto connection = connect();
  drive_.run([&]() -> asio::awaitable<void> {
    const Answer answer =
        co_await connection->request(words("EVAL 1"), ReplyLimits{}, clock_.now());
    expect_fault(answer, FaultKind::silent,
                 "no connection within 0s: this host was too busy to ask in time");
    EXPECT_TRUE(connection->broken());
    EXPECT_FALSE(connection->broke_off());
  }());
}

TEST_F(ConnectionTest, AnswersEverythingWhenTheServerCloses) {
  drive_.run([this]() -> asio::awaitable<void> {
    const auto connection = connect();
    Peer peer = co_await opened(connection);
    auto first = ask(connection, "EVAL 1");
    auto second = ask(connection, "EVAL 2");
    auto third = ask(connection, "EVAL 3");
    co_await peer.expect(wire("EVAL 1", "EVAL 2", "EVAL 3"));
    co_await peer.send("$3\r\none\r\n*2\r\n$7\r\ngranted");
    peer.close();
    expect_text(co_await first.get(), "one");
    expect_fault(co_await second.get(), FaultKind::silent, "closed the connection");
    expect_fault(co_await third.get(), FaultKind::silent, "closed the connection");
    EXPECT_TRUE(connection->broke_off());
    expect_fault(co_await connection->request(words("EVAL 4"), ReplyLimits{}, Instant::max()),
                 FaultKind::silent, "closed the connection");
  }());
}

TEST_F(ConnectionTest, ReadsSingleBytes) {
  drive_.run([this]() -> asio::awaitable<void> {
    const auto connection = connect("AUTH x");
    auto answer = ask(connection, "EVAL 1");
    Peer peer = co_await server_.accept();
    const std::string bytes = "+OK\r\n$5\r\nhello\r\n";
    for (const char byte : bytes) {
      EXPECT_FALSE(answer.ready());
      co_await peer.send(std::string(1, byte));
    }
    expect_text(co_await answer.get(), "hello");
  }());
}

TEST_F(ConnectionTest, BreaksOffAtGarbage) {
  drive_.run([this]() -> asio::awaitable<void> {
    const auto connection = connect();
    auto answer = ask(connection, "EVAL 1");
    auto behind = ask(connection, "EVAL 2");
    Peer peer = co_await server_.accept();
    co_await peer.expect(wire("EVAL 1", "EVAL 2"));
    co_await peer.send("HTTP/1.1 400 Bad Request\r\n\r\n");
    expect_fault(co_await answer.get(), FaultKind::garbage, "malformed or too large");
    expect_fault(co_await behind.get(), FaultKind::garbage, "malformed or too large");
    co_await peer.expect_end();
    EXPECT_TRUE(connection->broken());
  }());
}

TEST_F(ConnectionTest, BreaksOffAtAnAnswerToNothing) {
  drive_.run([this]() -> asio::awaitable<void> {
    const auto connection = connect();
    Peer peer = co_await opened(connection);
    co_await peer.send("$7\r\ngranted\r\n");
    co_await peer.expect_end();
    EXPECT_TRUE(connection->broken());
    // Asked too late, it answers at once.
    expect_fault(co_await connection->request(words("EVAL 1"), ReplyLimits{}, Instant::max()),
                 FaultKind::garbage, "unexpected reply");
  }());
}

TEST_F(ConnectionTest, BreaksOffAtAReplyThatIsTooLarge) {
  drive_.run([this]() -> asio::awaitable<void> {
    const auto connection = connect();
    auto answer = ask(connection, "EVAL 1");
    Peer peer = co_await server_.accept();
    co_await peer.expect(wire("EVAL 1"));
    co_await peer.send("*2147483647\r\n");
    expect_fault(co_await answer.get(), FaultKind::garbage, "too large");
    co_await peer.expect_end();
  }());
}

TEST_F(ConnectionTest, SaysWhyItCannotConnect) {
  Endpoint nowhere = server_.endpoint();
  nowhere.path += "-not";
  drive_.run([&, this]() -> asio::awaitable<void> {
    const auto connection = std::make_shared<Connection>(
        drive_.executor(), drive_.clock(),
        make_plain_transport(drive_.executor(), drive_.clock(), nowhere), Commands{});
    connection->start(Instant::max());
    const Answer answer =
        co_await connection->request(words("EVAL 1"), ReplyLimits{}, Instant::max());
    expect_fault(answer, FaultKind::silent, "cannot connect: No such file");
    EXPECT_TRUE(connection->broken());
    EXPECT_FALSE(connection->broke_off());
    co_await connection->close(Instant::max());
  }());
}

TEST_F(ConnectionTest, KeepsTheOrderOfManyRequests) {
  drive_.run([this]() -> asio::awaitable<void> {
    constexpr int count = 500;
    const auto connection = connect();
    std::vector<Eventual<Answer>> answers;
    for (int i = 0; i < count; ++i) answers.push_back(ask(connection, "ECHO " + std::to_string(i)));
    Peer peer = co_await server_.accept();
    for (int i = 0; i < count; ++i) {
      const Command command = co_await peer.read_command();
      EXPECT_EQ(command, words("ECHO " + std::to_string(i)));
      co_await peer.send("+" + command.back() + "\r\n");
    }
    for (int i = 0; i < count; ++i)
      expect_text(co_await answers[static_cast<std::size_t>(i)].get(), std::to_string(i));
  }());
}

TEST_F(ConnectionTest, KeepsTheOrderOfMoreThanTheSocketTakes) {
  drive_.run([this]() -> asio::awaitable<void> {
    constexpr int count = 40;
    const std::string filler(100'000, 'x');
    const auto connection = connect();
    Peer peer = co_await opened(connection);
    for (int i = 0; i < count; ++i)
      connection->post(words("ECHO " + std::to_string(i) + " " + filler));
    auto last = ask(connection, "PING");
    for (int i = 0; i < count; ++i) {
      const Command command = co_await peer.read_command();
      EXPECT_EQ(command, words("ECHO " + std::to_string(i) + " " + filler)) << i;
      co_await peer.send("+OK\r\n");
    }
    co_await peer.expect(wire("PING"));
    co_await peer.send("+PONG\r\n");
    expect_text(co_await last.get(), "PONG");
  }());
}

TEST_F(ConnectionTest, SendsEverythingBeforeItCloses) {
  drive_.run([this]() -> asio::awaitable<void> {
    const std::string filler(2'000'000, 'x');
    const auto connection = connect();
    Peer peer = co_await opened(connection);
    connection->post(words("ECHO " + filler));
    connection->post(words("EVAL undo"));
    auto closed = drive_.start(connection->close(Instant::max()));
    co_await peer.expect(wire("ECHO " + filler, "EVAL undo"));
    co_await peer.expect_end();  // the sending half only: the answers can still come
    EXPECT_FALSE(closed.ready());
    co_await peer.send("+OK\r\n+OK\r\n");
    peer.close();
    co_await closed.get();
    EXPECT_TRUE(connection->broken());
  }());
}

TEST_F(ConnectionTest, ClosesAtTheDeadlineWhateverTheServerDoes) {
  drive_.run([this]() -> asio::awaitable<void> {
    const auto connection = connect();
    Peer peer = co_await opened(connection);
    connection->post(words("EVAL undo"));
    auto closed = drive_.start(connection->close(clock_.now() + 1s));
    co_await peer.expect(wire("EVAL undo"));
    co_await peer.expect_end();
    EXPECT_FALSE(closed.ready());
    clock_.advance(1s);
    co_await closed.get();
    EXPECT_TRUE(connection->broken());
  }());
}

TEST_F(ConnectionTest, StillSendsWhatItCanWhenTheDeadlineHasPassed) {
  drive_.run([this]() -> asio::awaitable<void> {
    const auto connection = connect();
    Peer peer = co_await opened(connection);
    connection->post(words("EVAL undo"));
    co_await connection->close(clock_.now() - 1s);
    co_await peer.expect(wire("EVAL undo"));
    co_await peer.expect_end();
  }());
}

TEST_F(ConnectionTest, ClosesAtOnceWhenNothingIsOpen) {
  drive_.run([this]() -> asio::awaitable<void> {
    const auto connection = connect();
    Peer peer = co_await opened(connection);
    co_await connection->close(Instant::max());
    co_await peer.expect_end();
  }());
}

TEST_F(ConnectionTest, WaitsToOpenForWhatWasPostedFirst) {
  // It takes back what went over another connection.
  const auto connection = connect();
  connection->post(words("EVAL undo"));
  drive_.run([&, this]() -> asio::awaitable<void> {
    auto closed = drive_.start(connection->close(Instant::max()));
    Peer peer = co_await server_.accept();
    co_await peer.expect(wire("EVAL undo"));
    co_await peer.expect_end();
    peer.close();
    co_await closed.get();
  }());
}

TEST_F(ConnectionTest, DoesNotWaitToOpenForWhatNeverLeft) {
  const auto connection = connect();
  drive_.run([&, this]() -> asio::awaitable<void> {
    auto answer = ask(connection, "EVAL 1");
    (void)answer;
    connection->post(words("EVAL undo"));
    co_await connection->close(Instant::max());
    EXPECT_TRUE(connection->broken());
  }());
}

TEST_F(ConnectionTest, TellsOnceWhatBecameOfWhatWasPosted) {
  const auto connection = connect("AUTH x");
  std::vector<std::string> told;
  const auto note = [&](const Answer& answer) {
    told.push_back(answer ? answer->text : answer.error().text);
  };
  connection->post(words("EVAL 1"), note);
  connection->post(words("EVAL 2"), note);
  drive_.run([&, this]() -> asio::awaitable<void> {
    Peer peer = co_await server_.accept();
    co_await peer.expect(wire("AUTH x", "EVAL 1", "EVAL 2"));
    co_await peer.send("+OK\r\n+done\r\n");
    peer.close();
    co_await connection->close(Instant::max());
  }());
  connection->post(words("EVAL 3"), note);
  EXPECT_EQ(told, (std::vector<std::string>{"done", "it closed the connection",
                                            "it closed the connection"}));
}

}  // namespace
}  // namespace redlock::redis
