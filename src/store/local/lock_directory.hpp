#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/vote.hpp"
#include "support/result.hpp"
#include "support/unique_fd.hpp"

namespace redlock::local {

/// Where a lock directory is, according to its URL.
struct Location {
  std::string directory;  ///< absolute, in canonical spelling
  bool is_own = false;  ///< it is this user's own, and created if missing; otherwise it must exist,
                        ///< and users who may write to it share its locks

  /// The URL, for messages and fingerprints.
  [[nodiscard]] std::string name() const { return "local:" + directory; }
};

/// Reads `local:` (the directory of this process's effective user) and `local:/directory`. The
/// error is one clause for the user.
Result<Location, std::string> parse_location(std::string_view url);

/// An open lock directory, checked to be safe for locks.
struct Directory {
  UniqueFd fd;
  mode_t file_mode;  ///< of its files: only users who may write to the directory may read and write
                     ///< them
  uid_t owner;
  gid_t group;
  std::string path;  ///< for messages: escaped
};

/// Opens and checks a lock directory. Call it again for each question: a directory that was moved
/// away must not hold locks beside its successor. A user's own directory is created if missing,
/// with mode 0700, and refused unless only that user can access it.
///
/// It also refuses a symbolic link; a directory that any user may write to without the sticky bit,
/// since they could remove the files; and a file system that other hosts can see or that another
/// program implements, since flock(2) and clocks are only reliable on one host.
Result<Directory, Fault> open_directory(const Location& location);

/// Whether locks on a file system of this type (statfs(2)'s f_type) may depend on more than this
/// host's kernel.
bool reaches_beyond_this_host(std::uint32_t file_system);

/// Whether both are the same file.
inline bool is_same_file(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/// The names of all entries, in any order.
std::vector<std::string> names_in(const Directory& directory);

/// Creates a file atomically, with this name, these bytes, zeros up to `size`, and the directory's
/// rights: no process sees it incomplete. Leaves an existing file as it is.
Result<void, Fault> make_file(const Directory& directory, const std::string& name,
                              std::string_view bytes, std::size_t size = 0);

/// Removes temporary names of this file, left by a make_file() whose process died.
void remove_temporary_names(const Directory& directory, const struct stat& file);

/// Whether a file with this status may belong to a lock: who owns it may make locks here. Other
/// files are never removed, whatever their names.
bool is_of_locks(const Directory& directory, const struct stat& file);

/// A new name for a file or FIFO that is not complete yet.
std::string temporary_name();

/// Whether it is the name of such a file or FIFO.
bool is_temporary(std::string_view name);

/// Removes an incomplete file or FIFO that is older than a minute: its maker was killed.
void remove_if_old(const Directory& directory, const std::string& name);

/// Gives a new file of this type (S_IFREG or S_IFIFO) the directory's mode and group. If the
/// directory is one user's, and this process may give the file to that user, it does: what root
/// makes there must not lock the user out. On failure, returns false and sets errno: ENOENT if `fd`
/// is not a file of that type that this user owns under a single name, since a process that may
/// write to the directory may have replaced the file.
bool set_rights(const Directory& directory, int fd, mode_t type);

/// The fault for a file of a lock that could not be used.
unexpected<Fault> fault_of_errno(const std::string& what, int error);

/// The fault for a new file or FIFO that could not be given its name. If it is gone (ENOENT),
/// another process replaced it or assumed that its maker was killed, and another attempt may
/// succeed.
unexpected<Fault> fault_of_naming(const std::string& what, int error);

}  // namespace redlock::local
