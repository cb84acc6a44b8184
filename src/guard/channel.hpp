#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>

#include "support/unique_fd.hpp"

namespace redlock::guard {

/// A message between the front process and the holder process. Each kind has one sender, named
/// first.
struct Message {
  enum class Kind : int {
    signal,       ///< front process: a signal for the wait, or for the command; `number`, `sender`,
                  ///< `reached_job`
    handed_over,  ///< front process: the script has received the report
    go,  ///< front process: answers may_start, with its `number`; a paused front process does not
         ///< answer
    may_start,  ///< holder process: the locks are granted; may the command start? `number` is a
                ///< serial number
    waiting,    ///< holder process: the answer came too late, so it waits for the lock again
    started,    ///< holder process: the command is running
    paused,     ///< holder process: the command is paused; `number` is the signal
    notify,     ///< holder process: `text` for the service manager
    notified,   ///< front process: that text was passed on
    ended,      ///< holder process: the command has ended; its descendants may live on
    exited,     ///< holder process: final report; `number`: exit code, `text`: for --status-fd or
                ///< stdout
    died,  ///< holder process: final report; `number`: the signal to die of; `text` as in exited
  };
  Kind kind = Kind::signal;
  int number = 0;
  std::string text{};
  pid_t sender = 0;          ///< 0: the kernel, or unknown
  bool reached_job = false;  ///< it was sent to the job's process group while the command was in it
};

/// One end of a connection between the front process and the holder process. Messages arrive whole
/// and in order (SOCK_SEQPACKET). When one process ends, however it ends, the other reads end of
/// file.
class Channel {
 public:
  explicit Channel(UniqueFd fd) : fd_(std::move(fd)) {}

  /// Makes both ends, close-on-exec and non-blocking. Throws std::system_error.
  static std::pair<Channel, Channel> make_pair();

  [[nodiscard]] int fd() const noexcept { return fd_.get(); }

  /// Sends the whole message or none of it, and never blocks, however long the text is and however
  /// little the other end reads. False when the message cannot be sent: the other end is gone
  /// (receive() reports that), it has too many unread messages, or there is no memory for the text.
  bool send(const Message& message)
      const;  // NOLINT(modernize-use-nodiscard): callers often ignore the result

  enum class Empty { nothing_yet, ended };

  /// Returns the next message, or why there is none. A message that cannot be read as a whole
  /// counts as the end of the connection.
  std::pair<std::optional<Message>, Empty> receive() const;

 private:
  UniqueFd fd_;
};

}  // namespace redlock::guard
