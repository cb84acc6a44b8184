#pragma once

#include <sys/types.h>

#include <limits>
#include <map>

#include "guard/signals.hpp"
#include "support/boot_clock.hpp"
#include "support/unique_fd.hpp"

namespace redlock::guard {

/// A process in our process group that only reports which signals it receives, and from which
/// sender. A signal that both it and we receive from one sender was sent to the whole group
/// (`timeout`, `kill %1`), unless a process outside the group received it from that sender, too:
/// then the sender signals processes one by one. The witness has a title of its own, so that a
/// signal aimed at this program's name or arguments misses it.
class Witness {
 public:
  /// Starts the process. Call it before there are threads; throws std::system_error. `argc` and
  /// `argv` are main's.
  Witness(int argc, char** argv);

  /// Ends and reaps the process.
  ~Witness();
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

  /// Asks which signals it has received so far; returns the number of the question. However late
  /// the answer comes, it covers all signals sent before the question.
  int ask();

  /// Whether it has answered that question, as far as listen() has read.
  [[nodiscard]] bool answered(int question) const noexcept { return answers_ >= question; }

  /// Reads its reports without blocking. fd() is readable when there are any.
  void listen();
  [[nodiscard]] int fd() const noexcept { return reports_.get(); }

  /// Whether it received this signal from the same sender at `since` or later, and since the last
  /// call for the same signal; as far as listen() has read. Works only for signals that end a wait
  /// and were not typed.
  bool saw(const ReceivedSignal& signal, Instant since);

  /// Forgets all signals that it has received.
  void forget();

 private:
  static constexpr int all_answered = std::numeric_limits<int>::max();

  [[nodiscard]] bool has_ended() const noexcept { return answers_ == all_answered; }

  UniqueFd reports_;  ///< the pipe with a report for every signal and every answer
  std::map<ReceivedSignal, Instant> received_;  ///< and when, unless saw() has returned it
  int questions_ = 0;
  int answers_ = 0;
  pid_t pid_ = 0;
};

}  // namespace redlock::guard
