#pragma once

#include <memory>
#include <optional>
#include <string>

#include "store/tls.hpp"
#include "support/result.hpp"

struct ssl_ctx_st;

namespace redlock::redis {

struct OpenSsl;

/// What all TLS connections share: TLS 1.2 or later, the trusted CAs, our certificate. Never asks
/// for a passphrase.
class TlsContext final : public Tls {
 public:
  static Result<std::shared_ptr<const TlsContext>, TlsSettingError> make(
      const TlsSettings& settings);

  TlsContext(const OpenSsl& openssl, const TlsSettings& settings);
  ~TlsContext() override;
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  [[nodiscard]] const OpenSsl& openssl() const noexcept { return openssl_; }
  [[nodiscard]] ssl_ctx_st* get() const noexcept { return context_; }
  [[nodiscard]] const std::optional<std::string>& name() const noexcept { return name_; }
  [[nodiscard]] bool verifies() const noexcept { return verifies_; }

 private:
  std::optional<TlsSettingError> load(const TlsSettings& settings);
  [[nodiscard]] std::string reason() const;

  const OpenSsl& openssl_;
  ssl_ctx_st* context_;
  std::optional<std::string> name_;
  bool verifies_;
};

}  // namespace redlock::redis
