#pragma once

#include <memory>
#include <optional>
#include <string>

#include "support/result.hpp"

struct ssl_ctx_st;

namespace redlock::redis {

struct OpenSsl;

/// What the user said about TLS. Files are PEM.
struct TlsSettings {
  std::optional<std::string> ca_file;       ///< whom to believe; neither this nor the directory: the system's CAs
  std::optional<std::string> ca_directory;  ///< with names as c_rehash(1) makes them
  std::optional<std::string> certificate;   ///< our own, with its chain
  std::optional<std::string> key;           ///< its private key; nothing: it lies in the certificate's file
  std::optional<std::string> name;          ///< ask for this server name and verify it, instead of the URL's host
  bool insecure = false;                    ///< verify nothing: neither who signed the certificate nor for whom
};

/// What one of the settings is wrong with: `setting` is its option's name, empty when it is OpenSSL itself.
struct TlsSettingError {
  std::string setting;
  std::string text;  ///< one clause
};

/// What all TLS connections share: TLS 1.2 or later, who is believed, who we are. Never asks for a passphrase.
class TlsContext {
 public:
  static Result<std::shared_ptr<const TlsContext>, TlsSettingError> make(const TlsSettings& settings);

  TlsContext(const OpenSsl& openssl, const TlsSettings& settings);
  ~TlsContext();
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
