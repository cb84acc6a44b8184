#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace redlock::child {

/// The descriptors from 3 on that this process was started with and has not made its own, for those
/// that close them in several processes: to list them takes longer than to close them.
class InheritedDescriptors {
 public:
  /// Those that are open now without close-on-exec: all that we open have it.
  static InheritedDescriptors capture();

  /// As close_inherited() below, which captures them, too.
  void close(std::optional<int> keep) const;

 private:
  std::vector<int> open_;
};

/// Closes every inherited descriptor except stderr, as soon as the command has it: stdin and stdout
/// become /dev/null, and descriptors from 3 on are closed (those without close-on-exec: all of ours
/// have it). `keep` stays open. So a pipe reaches end of file when the command ends, not when we
/// do. A file on which this process holds a record lock (fcntl(2)), taken before it became this
/// program, stays open: closing it would drop the lock.
void close_inherited(std::optional<int> keep);

/// The same, and stderr becomes /dev/null, too: for a process that stays behind its caller. Command
/// substitution returns when the last writer closes the pipe: that must not be us.
void detach_from_caller();

/// Closes every descriptor but one, stdin, stdout and stderr included.
void close_all_but(int kept);

/// Throws std::system_error unless so many more descriptors can be opened. Check this before
/// acquiring a lock that could not be released otherwise.
void require_spare_descriptors(std::size_t count);

}  // namespace redlock::child
