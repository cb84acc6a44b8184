#pragma once

#include <string>
#include <string_view>

#include "support/boot_clock.hpp"
#include "support/unique_fd.hpp"

namespace redlock {

/// Writes lines to a descriptor that others may share, and never waits for its reader: what cannot
/// be written at once is dropped. The descriptor itself, and O_NONBLOCK of what it shares with
/// others, stay as they are. A regular file is written as files are: it is the file system that
/// may take its time.
class LineWriter {
 public:
  /// Keeps a descriptor of its own, close-on-exec. Throws std::system_error.
  explicit LineWriter(int fd);

  /// `line` ends with a newline. False: it was dropped. A line of which the beginning was written
  /// is completed before the next one begins.
  bool write(std::string_view line);

  /// The same for the last line of all, for whose reader there is some time. False: it was not
  /// written to its end, because that time was over, or the descriptor cannot be written to.
  bool write_within(Milliseconds max_wait, std::string_view line);

 private:
  /// How to write without waiting.
  enum class Kind {
    plain,   ///< a regular file, or an open file description of our own with O_NONBLOCK
    socket,  ///< send(2) has a flag for it
    shared,  ///< poll first, and let a timer interrupt a write that waits all the same
  };
  [[nodiscard]] std::size_t write_some(std::string_view bytes);
  [[nodiscard]] bool complete();

  UniqueFd fd_;
  Kind kind_ = Kind::shared;
  bool is_full_ = false;  ///< why the last attempt failed: its reader has to make room first
  std::string rest_;      ///< of a line that was not written to its end
};

}  // namespace redlock
