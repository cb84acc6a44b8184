#pragma once

#include <sys/types.h>

#include <set>

#include "support/unique_fd.hpp"

namespace redlock::child {

/// A process in our own group that does nothing but tell which signals it gets. What it gets as well as we, somebody sent to the whole
/// group (`timeout`, `kill %1`), and the command, which is in that group, has got it too.
class Witness {
 public:
  /// Starts it. Notification before there are threads; throws std::system_error.
  Witness();

  /// Ends it.
  ~Witness();
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

  /// Asks what it got until now; the number of the question. However late it comes to answer, what it got before stands in the answer.
  int ask();

  /// Whether it answered that question, as far as listen() has read.
  [[nodiscard]] bool answered(int question) const noexcept { return answers_ >= question; }

  /// Reads what it says; does not wait. fd() is readable when there is something.
  void listen();
  [[nodiscard]] int fd() const noexcept { return seen_.get(); }

  /// Whether it got this signal, one that ends a wait, since this was last asked about it; as far as listen() has read.
  bool saw(int signal);

  /// Forgets all that it got.
  void forget();

 private:
  UniqueFd seen_;        ///< a byte for every signal and every answer
  std::set<int> heard_;  ///< not asked about yet
  int questions_ = 0;
  int answers_ = 0;
  pid_t pid_ = 0;
};

}  // namespace redlock::child
