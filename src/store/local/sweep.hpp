#pragma once

#include <chrono>
#include "store/local/directory_clock.hpp"
#include "store/local/lock_directory.hpp"

namespace redlock::local {

/// Checks a few files of a lock directory, chosen at random, and removes those that are not needed:
/// lock files without a lease or a record, and with a fence counter so far below the time that the
/// next fence will be larger anyway; FIFOs of waiters that were killed; and incomplete files whose
/// maker was killed. Files of other programs stay, whatever their names: a lock file is known by
/// its content, and the others by their full names, types and owners. Called whenever a lock file
/// is created, it keeps their number near that of the files in use. Files that cannot be checked or
/// removed at the moment stay. `offset`: that of a new lock file (directory_offset()).
void sweep(const Directory& directory, const KernelTime& time, std::chrono::microseconds offset);

}  // namespace redlock::local
