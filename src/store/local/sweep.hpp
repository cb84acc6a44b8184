#pragma once

#include <chrono>
#include <string_view>

#include "store/local/lock_directory.hpp"

namespace redlock::local {

/// Checks a few files of a lock directory, chosen at random, and removes those that are not needed:
/// lock files without a lease or a record, and with a fence counter so far below the time that the
/// next fence will be larger anyway; FIFOs of waiters that were killed; and incomplete files whose
/// maker was killed. Called whenever a lock file is created, it keeps their number near that of the
/// files in use. Files that cannot be checked or removed at the moment stay.
/// `now`: the directory's time.
void sweep(const Directory& directory, std::string_view boot_id, std::chrono::microseconds now);

}  // namespace redlock::local
