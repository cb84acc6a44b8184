#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/vote.hpp"
#include "support/clock.hpp"
#include "support/result.hpp"
#include "support/unique_fd.hpp"

namespace redlock::local {

/// The directory of this host's locks, as a URL names it.
struct Place {
  std::string directory;  ///< absolute, in one spelling
  bool is_own = false;    ///< this user's, created when missing; otherwise it must exist, and users
                          ///< who may write to it share its locks

  /// For people and fingerprints.
  [[nodiscard]] std::string name() const { return "local:" + directory; }
};

/// Reads `local:` (the directory of this process's effective user) and `local:/directory`. The
/// error is one clause for the user.
Result<Place, std::string> parse_place(std::string_view url);

/// A lock directory that is open and fit to hold locks.
struct Directory {
  UniqueFd fd;
  mode_t file_mode;  ///< of its files: users who may write to the directory may read and write
                     ///< them, and no others
  gid_t group;
  std::string path;  ///< for messages: escaped
};

/// To be done again for each question: a directory that was moved away must not go on holding locks
/// beside its successor. A user's own is created when missing, with mode 0700, and refused when it
/// is not that user's alone. Refused as well: a symbolic link; a directory that any user may write
/// to without the sticky bit, since they could remove the files; a file system that other hosts can
/// see or that another program implements, since flock(2) and clocks end at this host.
Result<Directory, Fault> open_directory(const Place& place);

/// Whether locks on a file system of this type (statfs(2)'s f_type) may not depend on this host's
/// kernel alone.
bool reaches_beyond_this_host(std::uint32_t file_system);

/// Whether both are the same file.
inline bool is_same_file(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/// Its entries, in any order.
std::vector<std::string> names_in(const Directory& directory);

/// Creates a file with this name and these bytes, and with the mode and group for the directory, in
/// one step: no process sees it incomplete. Leaves an existing file as it is.
Result<void, Fault> make_file(const Directory& directory, const std::string& name,
                              std::string_view bytes);

/// Removes the names that make_file left for this file, when its process died before it could.
void remove_temporary_names(const Directory& directory, const struct stat& file);

/// A name, not in use, for a file or FIFO in the making.
std::string temporary_name();

/// Whether it is such a name.
bool is_temporary(std::string_view name);

/// Removes a file or FIFO in the making that is older than a minute: its maker was killed.
void remove_if_old(const Directory& directory, const std::string& name);

/// Gives a new file of this type (S_IFREG or S_IFIFO) the mode and group for the directory; false
/// with errno when that cannot be, and with ENOENT when `fd` is no such file of this user with one
/// name: a process that may write to the directory may have put another file in its place.
bool give_rights(const Directory& directory, int fd, mode_t type);

/// Why a file of a lock could not be used.
unexpected<Fault> fault_of_errno(const std::string& what, int error);

/// Why a file or FIFO in the making could not be given its name. If it is gone (ENOENT), another
/// process took its maker for killed or replaced it, and another attempt may succeed.
unexpected<Fault> fault_of_naming(const std::string& what, int error);

/// The time of all locks in a directory: the wall clock when the first of them was made in this
/// boot, and CLOCK_BOOTTIME from there on. It never steps, so what is later has a larger time,
/// whatever is done to the wall clock. Kept in the file `clock-BOOT_ID`, with the time namespace in
/// which it was made: in another one CLOCK_BOOTTIME may be another time, and it is refused there
/// (E4).
Result<std::chrono::microseconds, Fault> directory_time(const Directory& directory,
                                                        const std::string& boot_id,
                                                        const Clock& clock);

}  // namespace redlock::local
