#pragma once

#include <chrono>
#include <string_view>

#include "store/local/lock_directory.hpp"

namespace redlock::local {

/// Checks a few of the files in a lock directory, chosen at random, and removes what is not needed:
/// lock files with no lease, no record, and a fence counter so far below the time that the next
/// fence is larger without it; FIFOs of waiters that were killed; files that were never finished,
/// since their maker was killed. Done whenever one is to be created, this keeps their number
/// near that of the files in use. Files that cannot be checked or removed at the moment stay.
/// `now`: the directory's time.
void sweep(const Directory& directory, std::string_view boot_id, std::chrono::microseconds now);

}  // namespace redlock::local
