#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "support/line_writer.hpp"

namespace redlock::output {

/// The stderr of this process. A process has one, so all that write to it share this. A stderr that
/// is closed, a broken pipe or on a full disk never changes what the program does.
class StandardError {
 public:
  static StandardError& of_process();

  /// From now on nothing here waits for a reader (a full pipe, a terminal that is held by ^S). For
  /// processes that keep a lock, guard a command, or wait for a lock: what cannot be written at
  /// once is dropped. A process that is forked later inherits it.
  void never_wait() noexcept { waits_ = false; }

  /// From now on messages are lines of JSON, so that a reader of `run --json` gets nothing else
  /// from redlock-cli. A process that is forked later inherits it.
  void write_json() noexcept { json_ = true; }

  /// Text that is of no use later, such as a line that is drawn again.
  void draw(std::string_view text);

  /// Lines for the reader; they end with a newline. What is dropped is counted, and reported in
  /// front of the next that is written. `level`: of syslog(3), the lower the more important.
  void write(int level, std::string_view lines);

  /// A message for the reader: `redlock-cli: TEXT`, or {"level":"error","message":TEXT}.
  void message(int level, std::string_view text);

  /// At the end, when nothing depends on this process any more: of what was dropped the last that
  /// was most important waits for its reader after all, for at most a second.
  void finish();

  /// Another process has inherited what was dropped, and reports it.
  void forget() noexcept {
    close();
    nothing_dropped();
  }

  /// Closes its own descriptor. For a process that lets go of its caller: call it before it
  /// replaces or closes descriptor 2, which is what later lines go to.
  void close() noexcept { writer_.reset(); }

 private:
  bool try_to_write(std::string_view text);
  [[nodiscard]] std::string line(int level, std::string_view text) const;
  [[nodiscard]] std::string with_dropped(std::size_t dropped, std::string_view lines) const;
  void nothing_dropped() noexcept;
  [[nodiscard]] LineWriter* writer();

  bool waits_ = true;
  bool json_ = false;
  std::optional<LineWriter> writer_;  ///< from the first line on
  std::size_t dropped_ = 0;
  int kept_level_ = 0;
  std::string kept_;  ///< of what was dropped
};

/// Writes what a process has to say last to another descriptor, such as that of --status-fd, and
/// waits for its reader for at most a second. False when it was not written to its end.
bool write_last(int fd, std::string_view text);

}  // namespace redlock::output
