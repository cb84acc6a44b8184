#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>

#include "store/local/directory.hpp"

namespace redlock::local {

/// Makes a file under this name, with these bytes and with the mode and group for the directory, all at once: nobody sees it half made.
/// Leaves one that is there already as it is.
Result<void, Fault> make_file(const Directory& directory, const std::string& name, std::string_view bytes);

/// Of this file. For when its maker died before it did so.
void remove_temporary_names(const Directory& directory, const struct stat& file);

/// Whether what errno tells of may be over in a moment.
bool is_passing(int error);

/// Why a file of a lock could not be used.
unexpected<Fault> fault_of_errno(const std::string& what, int error);

}  // namespace redlock::local
