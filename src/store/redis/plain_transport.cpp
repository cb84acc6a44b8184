#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <asio/generic/stream_protocol.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/local/stream_protocol.hpp>
#include <asio/redirect_error.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>
#include <cstring>
#include <vector>

#include "store/redis/resolver.hpp"
#include "store/redis/transport.hpp"
#include "support/spawn.hpp"
#include "support/text.hpp"

namespace redlock::redis {
namespace {

/// Detects a dead connection within 20 s.
constexpr int seconds_until_probe = 10;
constexpr int seconds_between_probes = 5;
constexpr int max_probes = 2;

/// How often to retry a unix socket whose queue of connections is full.
constexpr Milliseconds full_queue_interval{20};

/// If a name was found before, its lookup gets the time until the deadline divided by this.
constexpr int lookup_share = 3;

constexpr const char* connection = "connection";

using Socket = asio::generic::stream_protocol::socket;
using SocketAddress = asio::generic::stream_protocol::endpoint;

class PlainTransport final : public Transport {
 public:
  PlainTransport(asio::any_io_executor executor, const Clock& clock, Endpoint endpoint)
      : clock_(clock), endpoint_(std::move(endpoint)), socket_(executor) {}

  asio::awaitable<std::optional<Fault>> open(Instant deadline) override {
    if (endpoint_.kind == Endpoint::Kind::unix_socket) {
      std::vector<SocketAddress> socket(1, asio::local::stream_protocol::endpoint(endpoint_.path));
      co_return co_await connect_to_one_of(std::move(socket), deadline);
    }
    asio::error_code not_numeric;
    const asio::ip::address address = asio::ip::make_address(endpoint_.host, not_numeric);
    if (!not_numeric) {
      co_return co_await connect_to_one_of(at_port(std::vector(1, address)), deadline);
    }
    co_return co_await connect_by_name(deadline);
  }

  asio::awaitable<std::size_t> read_some(asio::mutable_buffer buffer,
                                         asio::error_code& error) override {
    const std::size_t length =
        co_await socket_.async_read_some(buffer, asio::redirect_error(asio::use_awaitable, error));
    answered_ = answered_ || length > 0;
    co_return length;
  }

  asio::awaitable<void> write(asio::const_buffer buffer, asio::error_code& error) override {
    co_await asio::async_write(socket_, buffer, asio::redirect_error(asio::use_awaitable, error));
  }

  std::size_t try_write(asio::const_buffer buffer) override {
    asio::error_code error;
    const std::size_t written = socket_.write_some(buffer, error);
    return error ? 0 : written;
  }

  void end_sending() override {
    asio::error_code ignored;  // the other side may be gone already
    socket_.shutdown(Socket::shutdown_send, ignored);
  }

  void close() override {
    closed_ = true;
    asio::error_code ignored;
    socket_.close(ignored);
  }

  [[nodiscard]] std::string awaited() const override { return awaited_; }

  [[nodiscard]] Fault explain(const asio::error_code& error) const override {
    const bool ended = error == asio::error::eof;
    std::string text =
        ended ? "it closed the connection" : "the connection broke: " + error.message();
    // A TLS port also closes or resets a connection on which it receives plain text.
    const bool may_be_tls = !answered_ && (ended || error == asio::error::connection_reset);
    if (may_be_tls && endpoint_.kind == Endpoint::Kind::tcp)
      text += "; if it uses TLS, write rediss://, sentinels:// or clusters://";
    return {FaultKind::silent, std::move(text)};
  }

  [[nodiscard]] bool stays_on_this_host() const override {
    if (endpoint_.kind == Endpoint::Kind::unix_socket || is_loopback(endpoint_.host)) return true;
    asio::error_code no_there;
    asio::error_code no_here;
    const auto there = tcp_address(socket_.remote_endpoint(no_there));
    const auto here = tcp_address(socket_.local_endpoint(no_here));
    return !no_there && !no_here && (there.is_loopback() || there == here);
  }

 private:
  static asio::ip::address tcp_address(const SocketAddress& address) {
    asio::ip::tcp::endpoint tcp;
    if (address.size() > tcp.capacity()) return {};
    std::memcpy(tcp.data(), address.data(), address.size());
    tcp.resize(address.size());
    return tcp.address();
  }

  /// A slow lookup does not prevent a connection to addresses that an earlier lookup found.
  asio::awaitable<std::optional<Fault>> connect_by_name(Instant deadline) {
    const std::string host = escape_for_terminal(endpoint_.host);
    awaited_ = "answer to the name lookup (DNS) of " + host;
    Resolver& resolver = Resolver::of(socket_.get_executor());
    const auto last_known = resolver.last_known(endpoint_.host);
    const auto lookup = resolver.look_up(endpoint_.host);
    const Instant now = clock_.now();
    const Instant limit = last_known.empty() ? deadline : now + (deadline - now) / lookup_share;
    const Found* found = co_await lookup->wait_until(clock_, limit);
    const bool is_open = found == nullptr || (found->addresses.empty() && found->may_be_temporary);
    if (is_open && !last_known.empty() && !closed_) {
      awaited_ = "connection to the last known address of " + host + " (its name lookup is slow)";
      // If the server has moved, the lookup may find the new address in the remaining time.
      const Instant begun = clock_.now();
      auto fault = co_await connect_to_one_of(at_port(last_known), begun + (deadline - begun) / 2,
                                              /*else_none=*/false);
      if (!fault) co_return std::nullopt;
      awaited_ = "answer to the name lookup (DNS) of " + host;
    }
    if (found == nullptr) found = co_await lookup->wait_until(clock_, Instant::max());
    if (found->addresses.empty()) {
      co_return Fault{FaultKind::silent, "cannot look up " + host + ": " +
                                             (found->error.empty() ? "no address" : found->error)};
    }
    awaited_ = connection;
    co_return co_await connect_to_one_of(at_port(found->addresses), deadline);
  }

  [[nodiscard]] std::vector<SocketAddress> at_port(
      const std::vector<asio::ip::address>& addresses) const {
    std::vector<SocketAddress> sockets;
    for (const asio::ip::address& address : addresses)
      sockets.emplace_back(asio::ip::tcp::endpoint(address, endpoint_.port));
    return sockets;
  }

  /// `else_none`: there is no alternative to these addresses, so the last one may use all the time;
  /// our owner closes us at `deadline`.
  asio::awaitable<std::optional<Fault>> connect_to_one_of(std::vector<SocketAddress> addresses,
                                                          Instant deadline, bool else_none = true) {
    asio::error_code error;
    for (std::size_t i = 0; i < addresses.size() && !closed_; ++i) {
      const auto addresses_left = static_cast<Duration::rep>(addresses.size() - i);
      if (addresses_left == 1 && else_none) {
        error = co_await connect(addresses[i]);
        // A unix socket with a full queue of connections fails at once, while TCP would retry.
        while (error == asio::error::no_buffer_space && !closed_) {
          co_await sleep_until(clock_, clock_.now() + full_queue_interval);
          if (!closed_) error = co_await connect(addresses[i]);
        }
      } else {
        const Instant now = clock_.now();
        error = co_await connect_before(now + (deadline - now) / addresses_left, addresses[i]);
      }
      if (!error) co_return std::nullopt;
    }
    std::string why = "cannot connect: " + error.message();
    if (error == asio::error::connection_refused && endpoint_.path.empty())
      why += "; is it running, and does its bind include this address?";
    co_return Fault{FaultKind::silent, std::move(why)};
  }

  asio::awaitable<asio::error_code> connect(SocketAddress address) {
    asio::error_code error;
    asio::error_code ignored;
    socket_.close(ignored);
    socket_.open(address.protocol(), error);
    if (error) co_return error;
    // Asio opens sockets without close-on-exec; the command must not inherit one.
    ::fcntl(socket_.native_handle(), F_SETFD, FD_CLOEXEC);
    socket_.non_blocking(true, error);
    if (endpoint_.kind == Endpoint::Kind::tcp) set_tcp_options();
    co_await socket_.async_connect(address, asio::redirect_error(asio::use_awaitable, error));
    co_return error;
  }

  void set_tcp_options() {
    asio::error_code ignored;  // these options are not essential
    socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
    // A connection that only receives would not notice that the other end, or a firewall in
    // between, has dropped it.
    socket_.set_option(asio::socket_base::keep_alive(true), ignored);
    const auto set = [this](int option, int value) {
      ::setsockopt(socket_.native_handle(), IPPROTO_TCP, option, &value, sizeof value);
    };
    set(TCP_KEEPIDLE, seconds_until_probe);
    set(TCP_KEEPINTVL, seconds_between_probes);
    set(TCP_KEEPCNT, max_probes);
  }

  /// Connects to an address that is not the last to try: if it drops packets, it must not use up
  /// all the time.
  asio::awaitable<asio::error_code> connect_before(Instant until, SocketAddress address) {
    const std::shared_ptr<Event> done = clock_.make_event();
    spawn(socket_.get_executor(), [done, until, &socket = socket_]() -> asio::awaitable<void> {
      if (co_await done->wait_until(until)) co_return;
      asio::error_code ignored;
      socket.cancel(ignored);  // safe: the socket outlives the connect that this ends
    });
    const asio::error_code error = co_await connect(address);
    done->notify();
    co_return error;
  }

  const Clock& clock_;
  Endpoint endpoint_;
  Socket socket_;
  std::string awaited_ = connection;
  bool closed_ = false;
  bool answered_ = false;  ///< it sent something
};

}  // namespace

std::unique_ptr<Transport> make_plain_transport(asio::any_io_executor executor, const Clock& clock,
                                                Endpoint endpoint) {
  return std::make_unique<PlainTransport>(std::move(executor), clock, std::move(endpoint));
}

}  // namespace redlock::redis
