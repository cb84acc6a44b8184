#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "core/vote.hpp"
#include "store/local/directory.hpp"
#include "store/local/image.hpp"
#include "support/result.hpp"
#include "support/unique_fd.hpp"

namespace redlock::local {

/// One resource's file, open and locked with flock(2) for as long as the object lives. The lock ends with the process, however it ends.
class LockFile {
 public:
  struct Missing {};
  struct Busy {};  ///< another process has it just now
  using Opened = std::variant<LockFile, Missing, Busy, Fault>;

  /// Does not wait. The file is the one that others will find under this name, for as long as nobody removes it.
  static Opened try_open(const Directory& directory, const std::string& name);

  /// Locks an open file; nothing when it is not, or no longer, the one under this name: a lock on it would exclude nobody (E4).
  static std::optional<Opened> lock(UniqueFd fd, const Directory& directory, const std::string& name);

  /// Whether others still find it under its name. To be asked after store(), before anybody is told: this process may have been stopped
  /// meanwhile, and somebody have removed the file.
  [[nodiscard]] bool is_named(const Directory& directory) const;

  /// What lies in it, as of this boot. A fault when somebody else damaged it.
  [[nodiscard]] Result<image::Found, Fault> load(std::string_view boot_id) const;

  /// Puts `body` in the place of what was found; after a fault, and should the process die meanwhile, the file says what it said before.
  [[nodiscard]] Result<void, Fault> store(const image::Found& found, std::string_view boot_id, const std::string& body) const;

 private:
  LockFile(UniqueFd fd, const std::string& name) : fd_(std::move(fd)), name_(name) {}
  [[nodiscard]] Result<void, Fault> make_room(std::size_t body_size) const;

  UniqueFd fd_;
  std::string name_;
};

}  // namespace redlock::local
