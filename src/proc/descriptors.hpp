#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace redlock::proc {

/// The descriptors from 3 on that this process inherited and has not made its own. Captured once
/// when several processes are to close them, because listing takes longer than closing.
class InheritedDescriptors {
 public:
  /// Takes those that are open now without close-on-exec; every descriptor that we open has it.
  static InheritedDescriptors capture();

  /// Does the same as close_inherited(), for the captured descriptors.
  void close(std::optional<int> keep) const;

 private:
  std::vector<int> open_;
};

/// Lets go of every inherited descriptor except stderr and `keep`: stdin and stdout become
/// /dev/null, and descriptors from 3 on without close-on-exec are closed. Call it as soon as the
/// command has its copies, so that a pipe reaches end of file when the command ends, not when we
/// do. A file on which this process holds a record lock (fcntl(2)) from before its exec stays open,
/// because closing it would drop the lock.
void close_inherited(std::optional<int> keep);

/// Does the same with stderr as well, for a process that outlives its caller: command substitution
/// returns only when the last writer closes the pipe, and that must not be us.
void detach_from_caller();

/// Closes every descriptor but one, stdin, stdout and stderr included.
void close_all_but(int kept);

/// Closes every descriptor from `first` on. Async-signal-safe. Without close_range(2) it closes at
/// most 65536, one by one.
void close_from(int first) noexcept;

/// Throws std::system_error unless `count` more descriptors can be opened. Call it before a lock is
/// acquired that could not be released without them.
void require_spare_descriptors(std::size_t count);

}  // namespace redlock::proc
