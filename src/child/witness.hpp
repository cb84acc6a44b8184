#pragma once

#include <sys/types.h>

#include "support/unique_fd.hpp"

namespace redlock::child {

/// A process in our own group that does nothing but tell which signals it gets. What it gets as well as we, somebody sent to the whole
/// group (`timeout`, `kill %1`), and the command, which is in that group, has got it too.
class Witness {
 public:
  /// Starts it. Call before there are threads; throws std::system_error.
  Witness();

  /// Ends it.
  ~Witness();
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

  /// Whether it got this signal since it was last asked about any; does not wait. Forgets all that it got.
  bool saw(int signal);

 private:
  UniqueFd seen_;  ///< a byte for every signal
  pid_t pid_ = 0;
};

}  // namespace redlock::child
