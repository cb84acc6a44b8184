#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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

}  // namespace redlock::redis
