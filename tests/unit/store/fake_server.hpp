#pragma once

#include <unistd.h>

#include <asio/generic/stream_protocol.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/local/stream_protocol.hpp>
#include <asio/read.hpp>
#include <asio/redirect_error.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>
#include <set>

#include "drive.hpp"
#include "store/redis/command.hpp"
#include "store/redis/endpoint.hpp"

namespace redlock::testing {

/// What the scripts answer, on the wire: a lease with fence 42 that is in no queue, and a lock with
/// neither holder nor waiters.
inline constexpr std::string_view granted =
    "*6\r\n$7\r\ngranted\r\n$2\r\n42\r\n$2\r\nid\r\n$0\r\n\r\n*13\r\n$2\r\n17\r\n$0\r\n\r\n:0\r\n:"
    "0\r\n:-1\r\n$0\r\n\r\n:0\r\n:0\r\n$0\r\n\r\n$0\r\n\r\n:-1\r\n$0\r\n\r\n$0\r\n\r\n"
    "$0\r\n\r\n";
inline constexpr std::string_view is_free =
    "*2\r\n$4\r\nfree\r\n*8\r\n:0\r\n*0\r\n:0\r\n*0\r\n$0\r\n\r\n$2\r\n17\r\n$0\r\n\r\n*0\r\n";

/// What a master answers to ROLE and INFO behind an inspection.
inline constexpr std::string_view is_master_behind = "*1\r\n$6\r\nmaster\r\n$0\r\n\r\n";

/// A clock that the test sets: no answer is late by accident.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(const Clock& events) : bells_(events) {}

  [[nodiscard]] Instant now() const override { return now_; }
  [[nodiscard]] Milliseconds wall() const override { return 1ms; }
  [[nodiscard]] std::unique_ptr<Event> make_event() const override {
    return std::make_unique<ManualBell>(*this);
  }

  void advance(Duration span) {
    now_ += span;
    for (ManualBell* event : *made_) event->look();
  }

 private:
  class ManualBell final : public Event {
   public:
    explicit ManualBell(const ManualClock& clock)
        : clock_(clock), made_(clock.made_), event_(clock.bells_.make_event()) {
      made_->insert(this);
    }
    ~ManualBell() override { made_->erase(this); }
    ManualBell(const ManualBell&) = delete;
    ManualBell& operator=(const ManualBell&) = delete;

    void notify() override {
      rung_ = true;
      event_->notify();
    }
    asio::awaitable<bool> wait_until(Instant when) override {
      while (!rung_ && clock_.now() < when) co_await event_->wait_until(Instant::max());
      co_return std::exchange(rung_, false);
    }
    void look() { event_->notify(); }

   private:
    const ManualClock& clock_;
    std::shared_ptr<std::set<ManualBell*>> made_;  // coroutines that never end outlive the clock
    std::unique_ptr<Event> event_;
    bool rung_ = false;
  };

  const Clock& bells_;
  Instant now_{1h};
  std::shared_ptr<std::set<ManualBell*>> made_ = std::make_shared<std::set<ManualBell*>>();
};

/// A command, its words separated by blanks.
inline redis::Command words(std::string_view line) {
  redis::Command command(1);
  for (const char c : line) {
    if (c == ' ') {
      command.emplace_back();
    } else {
      command.back() += c;
    }
  }
  return command;
}

/// The bytes of these commands, one after the other.
template <class... Lines>
std::string wire(const Lines&... lines) {
  return (redis::EncodedCommand(words(lines)).bytes() + ...);
}

/// The server's side of one connection.
class Peer {
 public:
  explicit Peer(asio::generic::stream_protocol::socket socket) : socket_(std::move(socket)) {}

  /// These bytes must come next.
  asio::awaitable<void> expect(std::string expected) {
    const std::string got = co_await read(expected.size());
    EXPECT_EQ(got, expected);
  }

  /// So many bytes; fewer when the client ends before.
  asio::awaitable<std::string> read(std::size_t count) {
    std::string bytes(count, '\0');
    asio::error_code error;
    const std::size_t got = co_await asio::async_read(
        socket_, asio::buffer(bytes), asio::redirect_error(asio::use_awaitable, error));
    bytes.resize(got);
    co_return bytes;
  }

  /// The next command, whatever it is; nothing when the client ends instead.
  asio::awaitable<redis::Command> read_command() {
    redis::Command command;
    const std::string words = co_await read_line();
    if (!words.starts_with('*')) co_return command;
    for (int i = 0, count = std::stoi(words.substr(1)); i < count; ++i) {
      const std::string length = co_await read_line();
      const std::string word = co_await read(std::stoul(length.substr(1)) + 2);
      command.push_back(word.substr(0, word.size() - 2));
    }
    co_return command;
  }

  asio::awaitable<void> send(std::string bytes) {
    asio::error_code ignored;
    co_await asio::async_write(socket_, asio::buffer(bytes),
                               asio::redirect_error(asio::use_awaitable, ignored));
  }

  /// The client must send nothing more and end.
  asio::awaitable<void> expect_end() {
    const std::string rest = co_await read(1);
    EXPECT_EQ(rest, "");
  }

  void close() { socket_.close(); }

 private:
  asio::awaitable<std::string> read_line() {
    std::string line;
    while (!line.ends_with("\r\n")) {
      const std::string byte = co_await read(1);
      if (byte.empty()) co_return "";
      line += byte;
    }
    co_return line.substr(0, line.size() - 2);
  }

  asio::generic::stream_protocol::socket socket_;
};

/// A server that does what the test says, on a socket of its own.
class FakeServer {
 public:
  explicit FakeServer(Drive& drive)
      : acceptor_(drive.executor(), asio::local::stream_protocol::endpoint(directory_.file("s"))) {}

  [[nodiscard]] redis::Endpoint endpoint() const {
    redis::Endpoint endpoint;
    endpoint.kind = redis::Endpoint::Kind::unix_socket;
    endpoint.path = directory_.file("s");
    return endpoint;
  }

  asio::awaitable<Peer> accept() {
    co_return Peer(co_await acceptor_.async_accept(asio::use_awaitable));
  }

  /// Refuses connections from now on.
  void stop() { acceptor_.close(); }

  /// Whether a client waits to be accepted.
  bool is_called() {
    acceptor_.non_blocking(true);
    asio::local::stream_protocol::socket socket(acceptor_.get_executor());
    asio::error_code error;
    acceptor_.accept(socket, error);
    return !error;
  }

 private:
  Directory directory_;
  asio::local::stream_protocol::acceptor acceptor_;
};

/// A loopback address that is this process's alone. Clients of other tests go on calling a port of
/// 127.0.0.1 after their server has ended: they have something to undo there.
inline asio::ip::address_v4 own_loopback() {
  constexpr asio::ip::address_v4::uint_type first = 0x7f400000;  // 127.64.0.0; a pid has 22 bits
  return asio::ip::address_v4(first | static_cast<asio::ip::address_v4::uint_type>(::getpid()));
}

/// The same on a free port, as one of several that know each other by their addresses.
class FakeTcpServer {
 public:
  explicit FakeTcpServer(Drive& drive) : acceptor_(drive.executor(), {own_loopback(), 0}) {}

  [[nodiscard]] redis::Address address() const {
    return {own_loopback().to_string(), acceptor_.local_endpoint().port()};
  }

  asio::awaitable<Peer> accept() {
    asio::ip::tcp::socket socket = co_await acceptor_.async_accept(asio::use_awaitable);
    co_return Peer(std::move(socket));
  }

 private:
  asio::ip::tcp::acceptor acceptor_;
};

}  // namespace redlock::testing
