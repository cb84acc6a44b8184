#pragma once

#include <sys/types.h>

#include <set>

#include "support/unique_fd.hpp"

namespace redlock::child {

/// A process in our own group that only reports which signals it gets. A signal that both it and we
/// get was sent to the whole group (`timeout`, `kill %1`), so the command, which is in that group,
/// has got it too.
class Witness {
 public:
  /// Starts it. Call it before there are threads; throws std::system_error.
  Witness();

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

  /// Whether it got this signal, one that ends a wait, since the last call for the same signal; as
  /// far as listen() has read.
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
