#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/vote.hpp"
#include "store/local/lock_directory.hpp"
#include "store/local/lock_file_format.hpp"
#include "support/result.hpp"
#include "support/unique_fd.hpp"

namespace redlock::local {

/// One resource's file, open and locked with flock(2) for as long as the object lives. The lock
/// ends with the process, however it ends.
class LockFile {
 public:
  struct Missing {};
  struct Busy {};  ///< another process has it just now
  using Opened = std::variant<LockFile, Missing, Busy, Fault>;

  /// Does not wait. The file is the one that others will find under this name, for as long as
  /// nobody removes it.
  static Opened try_open(const Directory& directory, const std::string& name);

  /// Locks an open file; nothing when it is not, or no longer, the one under this name: a lock on
  /// it would exclude nobody (E4).
  static std::optional<Opened> lock(UniqueFd fd, const Directory& directory,
                                    const std::string& name);

  /// Whether others still find it under its name. To be asked after store(), before anybody is
  /// told: this process may have been stopped meanwhile, and somebody have removed the file.
  [[nodiscard]] bool is_named(const Directory& directory) const;

  /// What lies in it, as of this boot. A fault when somebody else damaged it.
  [[nodiscard]] Result<format::Found, Fault> load(std::string_view boot_id) const;

  /// Puts `body` in the place of what was found; after a fault, and should the process die
  /// meanwhile, the file says what it said before.
  [[nodiscard]] Result<void, Fault> store(const format::Found& found, std::string_view boot_id,
                                          const std::string& body) const;

 private:
  LockFile(UniqueFd fd, const std::string& name) : fd_(std::move(fd)), name_(name) {}
  [[nodiscard]] Result<void, Fault> make_room(std::size_t body_size) const;

  UniqueFd fd_;
  std::string name_;
};

/// The names of the lock files in a directory, in any order.
std::vector<std::string> lock_files_in(const Directory& directory);

/// Looks at a few lock files, chosen at random, and removes those that hold nothing of value: no
/// lease, no record, and a fence counter that the time has passed by so far that the next fence is
/// larger without it. Done whenever a file is made, this keeps their number near that of the locks
/// in use. Files that cannot be looked at just now, or not removed, stay.
void sweep(const Directory& directory, std::string_view boot_id, std::chrono::microseconds now);

}  // namespace redlock::local
