#pragma once

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
  struct Busy {};  ///< another process has it locked
  using Opened = std::variant<LockFile, Missing, Busy, Fault>;

  /// Creates a file without keys, unless there is one: from the beginning its content shows that it
  /// is a lock file, which sweep() may remove.
  static Result<void, Fault> make(const Directory& directory, const std::string& name,
                                  const TimeBase& base);

  /// Opens and locks the file without waiting. It is the file that other processes find under this
  /// name, until one of them removes it.
  static Opened try_open(const Directory& directory, const std::string& name);

  /// Locks an open file; nullopt if it is not, or no longer, the one under this name: a lock on it
  /// would not exclude other processes (E4).
  static std::optional<Opened> lock(UniqueFd fd, const Directory& directory,
                                    const std::string& name);

  /// Whether other processes still find the file under its name. Check this after store(), before
  /// any answer or notification: this process may have been stopped meanwhile, and another process
  /// may have removed the file.
  [[nodiscard]] bool is_named(const Directory& directory) const;

  /// Reads the content of this boot. A fault if another program has damaged the file, or it was
  /// written in another time namespace.
  [[nodiscard]] Result<format::Found, Fault> load(const KernelTime& time) const;

  /// Replaces the content with `body`. After a fault, or if the process dies meanwhile, the file
  /// has its former content. `base` is written now; `body` has at most format::max_body bytes.
  [[nodiscard]] Result<void, Fault> store(const format::Found& found, const TimeBase& base,
                                          const std::string& body) const;

 private:
  LockFile(UniqueFd fd, std::string name, std::string path)
      : fd_(std::move(fd)), name_(std::move(name)), path_(std::move(path)) {}
  [[nodiscard]] Result<void, Fault> make_room(std::size_t body_size) const;

  UniqueFd fd_;
  std::string name_;
  std::string path_;  ///< for messages
};

/// Whether it is the name of a lock file.
bool is_lock_file(std::string_view name);

/// The names of the lock files in a directory, in any order.
std::vector<std::string> lock_files_in(const Directory& directory);

}  // namespace redlock::local
