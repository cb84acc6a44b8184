#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "support/line_writer.hpp"

namespace redlock::output {

/// The stderr of this process, shared by everything that writes to it. No write waits for a reader
/// (a full pipe, a terminal stopped by ^S): a line that cannot be written at once is dropped. A
/// stderr that is closed, a broken pipe or on a full disk never changes what the program does.
class StandardError {
 public:
  static StandardError& of_process();

  /// From now on messages are lines of JSON, so that redlock-cli writes only JSON with `run
  /// --json`. Processes forked later inherit this mode.
  void write_json() noexcept { json_ = true; }

  /// Writes text that is useless later, such as a line that is redrawn: it is neither counted nor
  /// kept when it is dropped.
  void draw(std::string_view text);

  /// Writes lines, which end with a newline. Dropped calls are counted, and the number is reported
  /// before the next lines that are written. `level` is that of syslog(3): lower is more important.
  void write(int level, std::string_view lines);

  /// Writes a message: `redlock-cli: TEXT`, or {"level":"error","message":TEXT}.
  void message(int level, std::string_view text);

  /// For the end of the process, when no lock depends on it: writes the latest of the most
  /// important dropped lines after all, and waits up to a second for the reader.
  void finish();

  /// Discards the dropped lines, because another process has inherited and reports them.
  void forget() noexcept {
    close();
    clear_dropped();
  }

  /// Closes the duplicate of descriptor 2. For a process that detaches from its caller: call this
  /// before it replaces or closes descriptor 2, to which later lines then go.
  void close() noexcept { writer_.reset(); }

 private:
  bool try_to_write(std::string_view lines);
  [[nodiscard]] std::string line(int level, std::string_view text) const;
  [[nodiscard]] std::string with_dropped(std::size_t dropped, std::string_view lines) const;
  void clear_dropped() noexcept;
  [[nodiscard]] LineWriter* writer();

  bool json_ = false;
  std::optional<LineWriter> writer_;  ///< opened by the first line
  std::size_t dropped_ = 0;           ///< calls since the last successful one
  int kept_level_ = 0;
  std::string kept_;  ///< the dropped lines that finish() writes
};

/// Writes the last text of a process to another descriptor, such as that of --status-fd, and waits
/// up to a second for its reader. Returns false when not all of it was written.
bool write_last(int fd, std::string_view text);

}  // namespace redlock::output
