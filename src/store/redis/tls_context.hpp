#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "store/redis/system_authorities.hpp"
#include "store/registry.hpp"
#include "support/result.hpp"

struct ssl_ctx_st;
struct x509_store_ctx_st;

namespace redlock::redis {

struct OpenSsl;

/// The state that TLS connections share: TLS 1.2 or later, the trusted CAs, our certificate. Never
/// asks for a passphrase.
///
/// The system's CAs are in a directory and in a bundle, one file with all of them. Reading the
/// bundle takes longer than everything else in a run. If the directory is hashed, OpenSSL finds a
/// CA there by its name. Then the bundle is read only if a server's certificate cannot be verified
/// with the directory alone, and the outcome is as if both had been read at the start.
class TlsContext {
 public:
  /// What a new context takes over from an existing one.
  struct Kept {
    const TlsContext* from = nullptr;  ///< null: a new context from scratch
    bool authorities = false;
    bool certificate = false;
  };

  static Result<std::shared_ptr<const TlsContext>, TlsSettingError> make(
      const TlsSettings& settings, Kept kept);
  static Result<std::shared_ptr<const TlsContext>, TlsSettingError> make(
      const TlsSettings& settings) {
    return make(settings, Kept());
  }

  TlsContext(const OpenSsl& openssl, const TlsSettings& settings);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  [[nodiscard]] const OpenSsl& openssl() const noexcept { return openssl_; }
  [[nodiscard]] ssl_ctx_st* get() const noexcept { return context_; }
  [[nodiscard]] const std::optional<std::string>& name() const noexcept { return name_; }
  [[nodiscard]] bool verifies() const noexcept { return verifies_; }

  /// The files and directories with the CAs that it trusts, for the user; empty: there are none, or
  /// it does not verify.
  [[nodiscard]] const std::string& authorities() const noexcept { return authorities_; }

 private:
  std::optional<TlsSettingError> load_authorities(const TlsSettings& settings);
  std::optional<TlsSettingError> load_certificate(const TlsSettings& settings);
  void load_system_authorities();
  bool read_system_authorities();
  void keep_authorities(const TlsContext& from);
  void keep_certificate(const TlsContext& from);
  void try_directory_first();
  int verify(x509_store_ctx_st* chain);
  [[nodiscard]] TlsSettingError unusable_certificate(const std::string& file) const;
  /// `is_other`: it is the key of another certificate.
  [[nodiscard]] TlsSettingError unusable_key(const TlsSettings& settings, bool is_other) const;
  [[nodiscard]] TlsSettingError unusable(std::string setting, const std::string& file,
                                         std::string_view known_reason = {}) const;
  [[nodiscard]] std::string reason() const;

  const OpenSsl& openssl_;
  ssl_ctx_st* context_;
  std::optional<std::string> name_;
  bool verifies_;
  bool needs_passphrase_ = false;  ///< OpenSSL asked for one, which it does not get

  std::string authorities_;
  SystemAuthorities system_;

  /// The bundle has not been read yet: the system's directories are tried without it.
  bool tries_directory_ = false;
};

}  // namespace redlock::redis
