#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/vote.hpp"
#include "store/local/place.hpp"
#include "support/result.hpp"
#include "support/unique_fd.hpp"

namespace redlock::local {

/// A directory that can hold locks.
struct Directory {
  UniqueFd fd;
  mode_t file_mode;  ///< of the files in it: who may write to the directory may read and write them, nobody else
  gid_t group;
};

/// Opens the place, to be done anew for each question: a directory that was moved away must not go on holding locks beside its successor.
/// A user's own is made when there is none, mode 0700, and refused when it is not that user's alone. Refused as well: a symbolic link; what
/// anybody may write to without the sticky bit, since they could take the files away; a file system that other hosts can see or that
/// another program makes up, since flock(2) and clocks end at this host.
Result<Directory, Fault> open_directory(const Place& place);

/// What lies in it, in any order.
std::vector<std::string> names_in(const Directory& directory);

/// Whether locks on a file system of this type (statfs(2)'s f_type) may be no matter of this host's kernel alone.
bool reaches_beyond_this_host(std::uint32_t file_system);

}  // namespace redlock::local
