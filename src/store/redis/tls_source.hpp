#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/redis/tls_context.hpp"
#include "store/registry.hpp"
#include "support/result.hpp"

namespace redlock::redis {

/// Files that are read together, and again when one of them has changed. Where one is no regular
/// file, such as a pipe, they are read once.
class WatchedFiles {
 public:
  /// What tells a file from what it was before.
  struct Stamp {
    std::uint64_t device;
    std::uint64_t number;
    std::int64_t size;
    std::int64_t modified;  ///< in nanoseconds
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };
  using Stamps = std::vector<Stamp>;

  /// Call it before they are first read: what changes meanwhile is read again.
  explicit WatchedFiles(std::vector<std::string> paths);

  /// What they are now, if they have changed; nothing while one of them is missing.
  [[nodiscard]] std::optional<Stamps> changed() const;

  /// They were read, after changed() returned this.
  void set_read(Stamps stamps) { read_ = std::move(stamps); }

 private:
  [[nodiscard]] std::optional<Stamps> look() const;

  std::vector<std::string> paths_;
  std::optional<Stamps> read_;
};

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
