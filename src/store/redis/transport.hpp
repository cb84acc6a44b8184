#pragma once

#include <asio/any_io_executor.hpp>
#include <asio/awaitable.hpp>
#include <asio/buffer.hpp>
#include <asio/error_code.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/vote.hpp"
#include "store/redis/endpoint.hpp"
#include "support/clock.hpp"

namespace redlock::redis {

/// A stream of bytes to and from one server, which a Connection uses. Closing it ends every
/// operation under way with an error.
class Transport {
 public:
  virtual ~Transport() = default;

  /// Connects, including a TLS handshake if there is one. Each of several addresses gets its share
  /// of the time until `deadline`.
  virtual asio::awaitable<std::optional<Fault>> open(Instant deadline) = 0;

  virtual asio::awaitable<std::size_t> read_some(asio::mutable_buffer buffer,
                                                 asio::error_code& error) = 0;
  virtual asio::awaitable<void> write(asio::const_buffer buffer, asio::error_code& error) = 0;

  /// Writes as much as it can without waiting, and returns the number of bytes, possibly 0. The
  /// next write must begin with the bytes that were not written.
  virtual std::size_t try_write(asio::const_buffer buffer) = 0;

  /// Ends the stream to the server, after everything written. No write may follow.
  virtual void end_sending() = 0;

  virtual void close() = 0;

  /// What open() is waiting for, to follow the word `no` in the message about a missed deadline.
  [[nodiscard]] virtual std::string awaited() const = 0;

  /// What to do if that never comes, to end the same message; empty if there is no advice.
  [[nodiscard]] virtual std::string advice() const { return {}; }

  /// The server at the other end, as the beginning of a message; empty if the message needs none.
  [[nodiscard]] virtual std::string subject() const { return {}; }

  /// The fault for this error of a read or a write.
  [[nodiscard]] virtual Fault explain(const asio::error_code& error) const = 0;

  /// Whether the server is on this host, as far as the connection shows: it uses loopback or a unix
  /// socket, or has the same address at both ends. The transport must be open.
  [[nodiscard]] virtual bool stays_on_this_host() const = 0;

  /// Notes that the server is silent, or is not the master that a sentinel named. If possible, the
  /// next transport leads to another server.
  virtual void disown() {}
};

/// An unencrypted transport over TCP or a unix socket, depending on the endpoint.
std::unique_ptr<Transport> make_plain_transport(asio::any_io_executor executor, const Clock& clock,
                                                Endpoint endpoint);

class TlsSource;

/// TLS over another transport. `host`: the name or address of the server, which is verified.
std::unique_ptr<Transport> make_tls_transport(std::unique_ptr<Transport> below,
                                              const std::shared_ptr<TlsSource>& tls,
                                              const std::string& host);

/// A transport to this tcp or unix_socket endpoint. `tls` is used if the endpoint has TLS.
inline std::unique_ptr<Transport> make_transport(asio::any_io_executor executor, const Clock& clock,
                                                 const Endpoint& endpoint,
                                                 const std::shared_ptr<TlsSource>& tls) {
  auto transport = make_plain_transport(std::move(executor), clock, endpoint);
  return endpoint.tls ? make_tls_transport(std::move(transport), tls, endpoint.host)
                      : std::move(transport);
}

}  // namespace redlock::redis
