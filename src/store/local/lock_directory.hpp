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

/// Where the locks of this host lie, as a URL names it.
struct Place {
  std::string directory;  ///< absolute, in one spelling
  bool is_own = false;  ///< this user's, made when it is not there; otherwise it must be there, and
                        ///< who may write to it shares its locks

  /// For people and fingerprints.
  [[nodiscard]] std::string name() const { return "local:" + directory; }
};

/// Whether this is meant to be a lock directory: begins with `local:`.
bool is_place(std::string_view url);

/// Reads `local:` (the directory of this process's effective user) and `local:/directory`. The
/// error is one clause for the user.
Result<Place, std::string> parse_place(std::string_view url);

/// A lock directory that is open and fit to hold locks.
struct Directory {
  UniqueFd fd;
  mode_t file_mode;  ///< of its files: who may write to the directory may read and write them,
                     ///< nobody else
  gid_t group;
};

/// To be done anew for each question: a directory that was moved away must not go on holding locks
/// beside its successor. A user's own is made when there is none, mode 0700, and refused when it is
/// not that user's alone. Refused as well: a symbolic link; what anybody may write to without the
/// sticky bit, since they could take the files away; a file system that other hosts can see or that
/// another program makes up, since flock(2) and clocks end at this host.
Result<Directory, Fault> open_directory(const Place& place);

/// Whether locks on a file system of this type (statfs(2)'s f_type) may be no matter of this host's
/// kernel alone.
bool reaches_beyond_this_host(std::uint32_t file_system);

/// What lies in it, in any order.
std::vector<std::string> names_in(const Directory& directory);

/// Makes a file under this name, with these bytes and with the mode and group for the directory,
/// all at once: nobody sees it half made. Leaves one that is there already as it is.
Result<void, Fault> make_file(const Directory& directory, const std::string& name,
                              std::string_view bytes);

/// Removes the names that make_file left for this file, when its maker died before it did so.
void remove_temporary_names(const Directory& directory, const struct stat& file);

/// Gives a new file the mode and group for the directory; false with errno when that cannot be.
bool give_rights(const Directory& directory, int fd);

/// Why a file of a lock could not be used.
unexpected<Fault> fault_of_errno(const std::string& what, int error);

/// The time of all locks in a directory: the wall clock when the first of them was made in this
/// boot, and CLOCK_BOOTTIME from there on. It never steps, so what is later has a larger time,
/// whatever is done to the wall clock. Kept in the file `clock-BOOT_ID`, with the time namespace in
/// which it was made: in another one CLOCK_BOOTTIME may be another time, and it is refused there
/// (E4).
Result<std::chrono::microseconds, Fault> directory_time(const Directory& directory,
                                                        const std::string& boot_id,
                                                        const Clock& clock);

}  // namespace redlock::local
