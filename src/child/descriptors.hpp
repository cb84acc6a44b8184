#pragma once

#include <cstddef>
#include <optional>

namespace redlock::child {

/// Lets go of everything that we were given besides stderr, as soon as the command has it: stdin
/// and stdout become /dev/null, inherited descriptors from 3 on are closed (they are those without
/// close-on-exec: all of ours have it). `keep` stays open. So a pipe ends when the command ends,
/// not when we do. A file on which this process holds a record lock (fcntl(2)), taken before it
/// became this program, stays open: to close it would drop the lock.
void close_inherited(std::optional<int> keep);

/// Closes every descriptor but one, stdin, stdout and stderr included.
void close_all_but(int kept);

/// Throws std::system_error unless so many more descriptors can be opened. To be asked before there is a lock that nobody could release.
void require_spare_descriptors(std::size_t count);

}  // namespace redlock::child
