#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "store/local/directory.hpp"

namespace redlock::local {

/// The names of the lock files in a directory, in any order.
std::vector<std::string> lock_files_in(const Directory& directory);

/// Looks at a few lock files, chosen at random, and removes those that hold nothing of value: no lease, no record, and a fence counter that
/// the time has passed by so far that the next fence is larger without it. Done whenever a file is made, this keeps their number near that
/// of the locks in use. Files that cannot be looked at just now, or not removed, stay.
void sweep(const Directory& directory, std::string_view boot_id, std::chrono::microseconds now);

}  // namespace redlock::local
