#pragma once

#include <sys/types.h>

#include <limits>
#include <map>

#include "child/signals.hpp"
#include "support/boot_clock.hpp"
#include "support/unique_fd.hpp"

namespace redlock::child {

/// A process in our own group that only reports which signals it gets, and from whom. A signal that
/// both it and we get from one sender was sent to the whole group (`timeout`, `kill %1`), unless a
/// process outside of the group got it from that sender, too: that one signals processes one by
/// one. The witness has a name of its own, so that a signal aimed at this program, or at a word of
/// its arguments, misses it.
class Witness {
 public:
  /// Starts it. Call it before there are threads; throws std::system_error. `argc` and `argv` are
  /// main's.
  Witness(int argc, char** argv);

  /// Ends it.
  ~Witness();
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

  /// Asks which signals it got until now; returns the number of the question. However late the
  /// answer, it covers all earlier signals.
  int ask();

  /// Whether it answered that question, as far as listen() has read.
  [[nodiscard]] bool answered(int question) const noexcept { return answers_ >= question; }

  /// Reads its reports without waiting. fd() is readable when there is something.
  void listen();
  [[nodiscard]] int fd() const noexcept { return seen_.get(); }

  /// Whether it got this signal, one that ends a wait and was not typed, from the same sender, at
  /// `since` or later, and since the last call for the same; as far as listen() has read.
  bool saw(const ReceivedSignal& signal, Instant since);

  /// Forgets all that it got.
  void forget();

 private:
  static constexpr int all_answered = std::numeric_limits<int>::max();

  [[nodiscard]] bool has_ended() const noexcept { return answers_ == all_answered; }

  UniqueFd seen_;                            ///< a report for every signal and every answer
  std::map<ReceivedSignal, Instant> heard_;  ///< not asked about yet, and when it got them
  int questions_ = 0;
  int answers_ = 0;
  pid_t pid_ = 0;
};

}  // namespace redlock::child
