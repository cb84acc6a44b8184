#pragma once

#include <memory>

#include "store/redis/tls_context.hpp"
#include "store/redis/watched_files.hpp"
#include "store/tls.hpp"
#include "support/result.hpp"

namespace redlock::redis {

/// The user's TLS settings, and a context of what their files hold, which may change while we run:
/// certificates are renewed.
class TlsSource final : public Tls {
 public:
  /// Reads the files for the first time.
  static Result<std::shared_ptr<TlsSource>, TlsSettingError> make(const TlsSettings& settings);

  /// A context for a new connection, with the files as they are now. While what is new cannot be
  /// used, such as a certificate whose key is still to be written, the last one. It is the same one
  /// as long as no file has changed.
  std::shared_ptr<const TlsContext> context();

 private:
  explicit TlsSource(const TlsSettings& settings);

  TlsSettings settings_;
  WatchedFiles authorities_;
  WatchedFiles certificate_;  ///< with its key
  std::shared_ptr<const TlsContext> context_;
};

}  // namespace redlock::redis
