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

/// Files that are read together, and again when one of them has changed. If any is not a regular
/// file, such as a pipe, they are read only once.
class WatchedFiles {
 public:
  /// Identifies the state of a file: it differs once the file has changed.
  struct Stamp {
    std::uint64_t device;
    std::uint64_t number;
    std::int64_t size;
    std::int64_t modified;  ///< in nanoseconds
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };
  using Stamps = std::vector<Stamp>;

  /// Create it before the files are first read, so that a change in between is noticed.
  explicit WatchedFiles(std::vector<std::string> paths);

  /// The new stamps if the files have changed; nullopt if not, or while one of them is missing.
  [[nodiscard]] std::optional<Stamps> changed() const;

  /// Notes that the files were read after changed() had returned `stamps`.
  void set_read(Stamps stamps) { read_ = std::move(stamps); }

 private:
  [[nodiscard]] std::optional<Stamps> read_stamps() const;

  std::vector<std::string> paths_;
  std::optional<Stamps> read_;
};

/// The user's TLS settings, and a context with the contents of their files, which may change while
/// we run, as certificates are renewed.
class TlsSource final : public Tls {
 public:
  /// Reads the files for the first time.
  static Result<std::shared_ptr<TlsSource>, TlsSettingError> make(const TlsSettings& settings);

  /// A context for a new connection, with the files as they are now. While the new files cannot be
  /// used, such as a certificate whose key has not been written yet, it is the last context.
  /// Returns the same context until a file changes.
  std::shared_ptr<const TlsContext> context();

 private:
  explicit TlsSource(const TlsSettings& settings);

  TlsSettings settings_;
  WatchedFiles authorities_;
  WatchedFiles certificate_;  ///< with its key
  std::shared_ptr<const TlsContext> context_;
};

}  // namespace redlock::redis
