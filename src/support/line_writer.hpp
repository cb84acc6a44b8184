#pragma once

#include <string>
#include <string_view>

#include "support/boot_clock.hpp"
#include "support/unique_fd.hpp"

namespace redlock {

/// Writes lines to a descriptor that other processes may share, and never waits for its reader: a
/// line that cannot be written at once is dropped. It changes neither the descriptor nor O_NONBLOCK
/// of the shared file description. A write to a regular file may still wait for the file system.
class LineWriter {
 public:
  /// Keeps a duplicate of `fd`, close-on-exec. Throws std::system_error.
  explicit LineWriter(int fd);

  /// Writes `line`, which ends with a newline. Returns false if it was dropped. A line that was
  /// written in part is completed before the next one.
  bool write(std::string_view line);

  /// Writes the last line of the process, and waits up to `max_wait` for its reader. Returns false
  /// if the line was not written completely, because of the time limit or an error.
  bool write_within(Milliseconds max_wait, std::string_view line);

 private:
  /// How to write without waiting.
  enum class Kind {
    plain,   ///< a regular file, or an open file description of our own with O_NONBLOCK
    socket,  ///< send(2) has a flag for it
    shared,  ///< poll first, and let a timer interrupt a write that blocks nevertheless
  };
  [[nodiscard]] std::size_t write_some(std::string_view bytes);
  [[nodiscard]] bool complete();

  UniqueFd fd_;
  Kind kind_ = Kind::shared;
  bool is_full_ = false;  ///< the last attempt failed because the reader must make room first
  std::string rest_;      ///< the unwritten end of a line
};

}  // namespace redlock
