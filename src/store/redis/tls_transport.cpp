#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <asio/error.hpp>
#include <climits>
#include <new>
#include <utility>

#include "store/redis/openssl.hpp"
#include "store/redis/tls_source.hpp"
#include "store/redis/transport.hpp"
#include "support/text.hpp"

namespace redlock::redis {
namespace {

/// The size of reads: one TLS record.
constexpr std::size_t read_size = 16 * 1024;

// Not a std::string: the tests link a transport of their own instead of this file.
constexpr const char* without_tls = "write redis://, sentinel:// or cluster://";

/// The server's name for TLS: the host without the parts that only serve to reach it. Never empty,
/// since OpenSSL would then accept any certificate.
std::string verified_name(const std::string& host) {
  const bool is_v6 = host.find(':') != std::string::npos;
  // Cut off the zone of an IPv6 address, or the dot that ends a fully qualified name.
  const std::size_t end = is_v6 ? host.find('%') : host.size() - (host.ends_with('.') ? 1 : 0);
  return end == 0 ? host : host.substr(0, end);
}

bool is_address(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> address{};
  return ::inet_pton(AF_INET, host.c_str(), address.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), address.data()) == 1;
}

/// OpenSSL encrypts and decrypts in memory; the plain transport below sends and receives. Encrypted
/// bytes wait in `sealed_` until the socket takes them.
class TlsTransport final : public Transport {
 public:
  TlsTransport(std::unique_ptr<Transport> below, std::shared_ptr<const TlsContext> context,
               const std::string& host)
      : below_(std::move(below)),
        context_(std::move(context)),
        openssl_(context_->openssl()),
        name_(verified_name(context_->name().value_or(host))),
        ssl_(openssl_.SSL_new(context_->get())),
        in_(openssl_.BIO_new(openssl_.BIO_s_mem())),
        out_(openssl_.BIO_new(openssl_.BIO_s_mem())) {
    if (ssl_ == nullptr || in_ == nullptr || out_ == nullptr) throw std::bad_alloc();
    openssl_.SSL_set_bio(ssl_, in_, out_);
    openssl_.SSL_set_connect_state(ssl_);
    identify();
  }

  ~TlsTransport() override { openssl_.SSL_free(ssl_); }  // with both BIOs
  TlsTransport(const TlsTransport&) = delete;
  TlsTransport& operator=(const TlsTransport&) = delete;

  asio::awaitable<std::optional<Fault>> open(Instant deadline) override {
    if (auto fault = co_await below_->open(deadline)) co_return fault;
    connected_ = true;
    for (;;) {
      openssl_.ERR_clear_error();
      const int result = openssl_.SSL_do_handshake(ssl_);
      const int why = openssl_.SSL_get_error(ssl_, result);
      if (why != SSL_ERROR_NONE && why != SSL_ERROR_WANT_READ) note_failure();
      asio::error_code error;
      collect_sealed();
      // Also after a failure: our alert appears in the server's log.
      co_await send_sealed(error);
      if (failure_) co_return failure_;
      if (error) co_return explain(error);
      if (why == SSL_ERROR_NONE) break;
      co_await receive(error);
      if (error) co_return explain(error);
    }
    handshake_done_ = true;
    co_return std::nullopt;
  }

  asio::awaitable<std::size_t> read_some(asio::mutable_buffer buffer,
                                         asio::error_code& error) override {
    const int room = static_cast<int>(std::min(buffer.size(), static_cast<std::size_t>(INT_MAX)));
    for (;;) {
      openssl_.ERR_clear_error();
      const int length = openssl_.SSL_read(ssl_, buffer.data(), room);
      if (length > 0) {
        push_sealed();  // the reply to a key update
        answered_ = true;
        co_return static_cast<std::size_t>(length);
      }
      const int why = openssl_.SSL_get_error(ssl_, length);
      if (why == SSL_ERROR_WANT_READ) {
        push_sealed();
        co_await receive(error);
        if (error) co_return 0;
        continue;
      }
      // Treat close_notify like a plain close: the reply parser never takes a truncated reply for a
      // complete one.
      error = asio::error::eof;
      if (why != SSL_ERROR_ZERO_RETURN) note_failure();
      co_return 0;
    }
  }

  asio::awaitable<void> write(asio::const_buffer buffer, asio::error_code& error) override {
    buffer += std::exchange(already_sealed_, 0);
    seal(buffer);
    co_await send_sealed(error);
  }

  std::size_t try_write(asio::const_buffer buffer) override {
    if (sending_ || !sealed_.empty()) return 0;
    seal(buffer + std::exchange(already_sealed_, 0));
    push_sealed();
    if (sealed_.empty()) return buffer.size();
    // Encrypted bytes cannot be withdrawn. The caller passes the same bytes again, and we skip
    // them.
    already_sealed_ = buffer.size();
    return 0;
  }

  void end_sending() override {
    openssl_.ERR_clear_error();
    openssl_.SSL_shutdown(ssl_);
    push_sealed();  // if the socket does not take it, the end of the stream has the same effect
    below_->end_sending();
  }

  void close() override { below_->close(); }

  [[nodiscard]] std::string awaited() const override {
    return connected_ ? "TLS handshake" : below_->awaited();
  }

  [[nodiscard]] std::string advice() const override {
    return connected_ ? std::string("if the server does not use TLS, ") + without_tls
                      : below_->advice();
  }

  [[nodiscard]] Fault explain(const asio::error_code& error) const override {
    if (failure_) return *failure_;
    if (!handshake_done_ && connected_) {
      return {FaultKind::garbage, "it closed the connection in the TLS handshake; " + advice()};
    }
    if (!answered_ && (error == asio::error::eof || error == asio::error::connection_reset)) {
      // With TLS 1.3 the handshake ends before the server has checked our certificate, and its
      // alert may get lost in the reset.
      return {FaultKind::silent,
              "it closed the connection after the TLS handshake; does it require a client "
              "certificate (--cert)?"};
    }
    return below_->explain(error);
  }

  [[nodiscard]] bool stays_on_this_host() const override { return below_->stays_on_this_host(); }

 private:
  /// Sets the server name to request, and the name or address to verify.
  void identify() {
    const bool by_address = is_address(name_);
    if (!by_address) {
      std::string name = name_;
      openssl_.SSL_ctrl(ssl_, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name.data());
    }
    if (!context_->verifies()) return;
    // Without the second call, OpenSSL would match the free text of the subject if a certificate
    // has no names.
    openssl_.SSL_set_hostflags(
        ssl_, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    const int done = by_address ? openssl_.X509_VERIFY_PARAM_set1_ip_asc(
                                      openssl_.SSL_get0_param(ssl_), name_.c_str())
                                : openssl_.SSL_set1_host(ssl_, name_.c_str());
    if (done != 1) throw std::bad_alloc();  // without it any certificate would be accepted
  }

  void seal(asio::const_buffer buffer) {
    openssl_.ERR_clear_error();
    // A memory BIO takes everything at once.
    if (buffer.size() > 0) openssl_.SSL_write(ssl_, buffer.data(), static_cast<int>(buffer.size()));
    collect_sealed();
  }

  void collect_sealed() {
    std::array<char, read_size> bytes;
    for (;;) {
      const int length = openssl_.BIO_read(out_, bytes.data(), static_cast<int>(bytes.size()));
      if (length <= 0) return;
      sealed_.append(bytes.data(), static_cast<std::size_t>(length));
    }
  }

  /// Sends what it can without waiting. The rest follows with the next write.
  void push_sealed() {
    collect_sealed();
    if (!sending_ && !sealed_.empty()) sealed_.erase(0, below_->try_write(asio::buffer(sealed_)));
  }

  asio::awaitable<void> send_sealed(asio::error_code& error) {
    sending_ = true;
    while (!sealed_.empty() && !error) {
      const std::string bytes = std::exchange(sealed_, {});
      co_await below_->write(asio::buffer(bytes), error);
    }
    sending_ = false;
  }

  asio::awaitable<void> receive(asio::error_code& error) {
    std::array<char, read_size> bytes;
    const std::size_t length = co_await below_->read_some(asio::buffer(bytes), error);
    if (!error) openssl_.BIO_write(in_, bytes.data(), static_cast<int>(length));
  }

  /// Stores OpenSSL's description of its last failure.
  void note_failure() {
    const unsigned long code = openssl_.ERR_get_error();
    openssl_.ERR_clear_error();
    failure_ = fault_of(ERR_GET_REASON(code), openssl_.ERR_reason_error_string(code));
  }

  [[nodiscard]] Fault fault_of(int reason, const char* text) const {
    switch (reason) {
      case SSL_R_CERTIFICATE_VERIFY_FAILED:
        return {FaultKind::denied, verification_text(openssl_.SSL_get_verify_result(ssl_))};
      case SSL_R_WRONG_VERSION_NUMBER:
      case SSL_R_HTTP_REQUEST:
      case SSL_R_UNEXPECTED_MESSAGE:
        return {FaultKind::garbage,
                std::string("it does not use TLS; if that is intended, ") + without_tls};
      case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
        return {FaultKind::denied, "it requires a client certificate: set --cert and --cert-key"};
      case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
      case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
      case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
      case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
      case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
      case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
      case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
      case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
      case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
        return {FaultKind::denied,
                "it refused the TLS handshake, perhaps because of our certificate (--cert): " +
                    said(text)};
      case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
      case SSL_R_UNSUPPORTED_PROTOCOL:
        return {FaultKind::denied,
                "it supports no TLS version that we accept (1.2 or later): " + said(text)};
      default:
        return {FaultKind::garbage, "TLS: " + said(text)};
    }
  }

  static std::string said(const char* text) {
    return escape_for_terminal(text != nullptr ? text : "unknown error");
  }

  [[nodiscard]] std::string verification_text(long result) const {
    const std::string name = escape_for_terminal(name_);
    switch (result) {
      case X509_V_ERR_HOSTNAME_MISMATCH:
      case X509_V_ERR_IP_ADDRESS_MISMATCH:
        return "its certificate is not for " + name + ": no subjectAltName in it says so " +
               "(--sni names the server otherwise than the URL)";
      case X509_V_ERR_CERT_HAS_EXPIRED:
        return "its certificate, or its CA's, has expired";
      case X509_V_ERR_CERT_NOT_YET_VALID:
        return "its certificate, or its CA's, is not valid yet; is our clock right?";
      case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
      case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
      case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
      case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
      case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        return std::string("its certificate is not signed by a trusted CA; set its CA with ") +
               (context_->authorities().empty()
                    ? "--cacert, or install CA certificates: this host has none"
                    : "--cacert");
      default:
        return "its certificate is invalid: " +
               said(openssl_.X509_verify_cert_error_string(result));
    }
  }

  std::unique_ptr<Transport> below_;
  std::shared_ptr<const TlsContext> context_;
  const OpenSsl& openssl_;
  std::string name_;
  SSL* ssl_;
  BIO* in_;   ///< from the server; ssl_'s
  BIO* out_;  ///< to the server; ssl_'s
  std::string sealed_;
  std::size_t already_sealed_ = 0;  ///< bytes passed to try_write() that are encrypted but not sent
  std::optional<Fault> failure_;
  bool sending_ = false;
  bool connected_ = false;
  bool handshake_done_ = false;
  bool answered_ = false;
};

}  // namespace

std::unique_ptr<Transport> make_tls_transport(std::unique_ptr<Transport> below,
                                              const std::shared_ptr<TlsSource>& tls,
                                              const std::string& host) {
  return std::make_unique<TlsTransport>(std::move(below), tls->context(), host);
}

}  // namespace redlock::redis
