#pragma once

#include <optional>
#include <string>
#include <utility>

#include "support/unique_fd.hpp"

namespace redlock::child {

/// What front and holder tell each other.
struct Message {
  enum class Kind : int {
    signal,       ///< front: this signal is for the wait, or for the command; `number`
    handed_over,  ///< front: the script has what `report` carried
    go,           ///< front: yes, start the command (a front that is stopped does not answer); `number` as in granted
    granted,      ///< holder: the lock is there; may the command start? `number` counts the questions
    waiting,      ///< holder: the answer came too late, it waits for the lock again
    started,      ///< holder: the command runs
    stopped,      ///< holder: the command was stopped; `number` is the signal
    ended,        ///< holder: the command has ended; what it left may live on
    exited,       ///< holder: the last word; `number` is the exit code, `text` what --status-fd or stdout gets
    died,         ///< holder: the last word; `number` is the signal to die of, `text` as in exited
  };
  Kind kind = Kind::signal;
  int number = 0;
  std::string text;
};

/// One end of a connection between front and holder: whole messages, in order (SOCK_SEQPACKET). When one process ends, however it ends, the
/// other reads the end.
class Channel {
 public:
  explicit Channel(UniqueFd fd) : fd_(std::move(fd)) {}

  /// Both ends; close-on-exec, reading and writing do not block. Throws std::system_error.
  static std::pair<Channel, Channel> make_pair();

  [[nodiscard]] int fd() const noexcept { return fd_.get(); }

  /// Sends the whole message or nothing, and never blocks, however long the text and though the
  /// other end reads nothing. False when it cannot be sent: the other end is gone (reading tells),
  /// has too much unread, or there is no memory for the text.
  bool send(const Message& message) const;  // NOLINT(modernize-use-nodiscard): often nothing follows

  enum class Empty { nothing_yet, ended };

  /// The next message, or why there is none. One that cannot be read whole ends the connection.
  std::pair<std::optional<Message>, Empty> receive() const;

 private:
  UniqueFd fd_;
};

}  // namespace redlock::child
