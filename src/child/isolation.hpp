#pragma once

#include <optional>
#include <string>

#include "child/cgroup.hpp"
#include "support/result.hpp"

namespace redlock::child {

enum class IsolationMode {
  none,
  cgroup,         ///< all processes are killed at once
  pid_namespace,  ///< all processes die with us, for whatever reason
};

/// What isolates the command, besides its position in our process tree. Made before the fork of the
/// holder process and before the wait, so that what cannot work here is known before anything is
/// locked.
class Isolation {
 public:
  /// The error is one clause that says why not, and what to do. SIGCHLD must not be ignored.
  static Result<Isolation, std::string> make(IsolationMode mode, bool has_terminal);

  /// The cgroup for commands; none in other modes.
  [[nodiscard]] const Cgroup* cgroup() const noexcept { return cgroup_ ? &*cgroup_ : nullptr; }

  /// Whether each command gets a pid namespace. The holder process makes it, because init must be
  /// its child.
  [[nodiscard]] bool wants_pid_namespace() const noexcept {
    return mode_ == IsolationMode::pid_namespace;
  }

  /// For a process that ends without destructors, when nothing is left to be killed. The last
  /// process to call it removes the cgroup.
  void clear_away() const noexcept {
    if (cgroup_) cgroup_->remove();
  }

 private:
  explicit Isolation(IsolationMode mode) : mode_(mode) {}

  IsolationMode mode_;
  std::optional<Cgroup> cgroup_;
};

}  // namespace redlock::child
