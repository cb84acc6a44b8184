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

/// A stream of bytes to and from one server; what a Connection speaks Redis over. Closing it ends
/// every operation under way with an error.
class Transport {
 public:
  virtual ~Transport() = default;

  /// Connects (and shakes hands, where there is something to shake). With several addresses each
  /// gets its share of the time until `deadline`.
  virtual asio::awaitable<std::optional<Fault>> open(Instant deadline) = 0;

  virtual asio::awaitable<std::size_t> read_some(asio::mutable_buffer buffer,
                                                 asio::error_code& error) = 0;
  virtual asio::awaitable<void> write(asio::const_buffer buffer, asio::error_code& error) = 0;

  /// Writes what can be written without waiting; 0 when nothing can. The next write must begin with
  /// what was not taken.
  virtual std::size_t try_write(asio::const_buffer buffer) = 0;

  /// No more bytes from us; the server sees the end after everything written.
  virtual void end_sending() = 0;

  virtual void close() = 0;

  /// What open() waits for, as the text after `no`, for the message when the deadline ends it.
  [[nodiscard]] virtual std::string awaited() const = 0;

  /// Who is at the other end, as the beginning of a message; empty where that goes without saying.
  [[nodiscard]] virtual std::string subject() const { return {}; }

  /// What this error of a read or a write means.
  [[nodiscard]] virtual Fault explain(const asio::error_code& error) const = 0;

  /// Whether the server is on this host, as far as the connection shows: over loopback or a unix
  /// socket, or with the same address at both ends. Of one that is open.
  [[nodiscard]] virtual bool stays_on_this_host() const = 0;

  /// The server is silent, or not the master that it was named as: the next transport is to lead
  /// elsewhere, if it can.
  virtual void disown() {}
};

/// TCP or unix socket, as the endpoint says, without encryption.
std::unique_ptr<Transport> make_plain_transport(asio::any_io_executor executor, const Clock& clock,
                                                Endpoint endpoint);

class TlsSource;

/// TLS over another transport, with the server that `host` names: a name or an address, as the
/// user wants it verified.
std::unique_ptr<Transport> make_tls_transport(std::unique_ptr<Transport> below,
                                              const std::shared_ptr<TlsSource>& tls,
                                              const std::string& host);

/// What reaches this tcp or unix_socket endpoint; `tls` is for one with TLS.
inline std::unique_ptr<Transport> make_transport(asio::any_io_executor executor, const Clock& clock,
                                                 const Endpoint& endpoint,
                                                 const std::shared_ptr<TlsSource>& tls) {
  auto transport = make_plain_transport(std::move(executor), clock, endpoint);
  return endpoint.tls ? make_tls_transport(std::move(transport), tls, endpoint.host)
                      : std::move(transport);
}

}  // namespace redlock::redis
