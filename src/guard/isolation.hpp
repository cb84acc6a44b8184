#pragma once

#include <optional>
#include <string>

#include "proc/cgroup.hpp"
#include "support/result.hpp"

namespace redlock::guard {

enum class IsolationMode {
  none,
  cgroup,         ///< the kernel kills all processes at once
  pid_namespace,  ///< all processes die when we die, for whatever reason
};

/// The means of isolation for the command, besides the tracking of our process tree. Made before
/// the holder process is forked and before the wait, so that unsupported isolation fails before
/// anything is locked.
class Isolation {
 public:
  /// The error is one clause that names the cause and the remedy. SIGCHLD must not be ignored.
  static Result<Isolation, std::string> make(IsolationMode mode, bool has_terminal);

  /// The cgroup for the command; null in other modes.
  [[nodiscard]] const proc::Cgroup* cgroup() const noexcept {
    return cgroup_ ? &*cgroup_ : nullptr;
  }

  /// Whether the command gets a pid namespace. The holder process makes it, because the init of the
  /// namespace must be its child.
  [[nodiscard]] bool uses_pid_namespace() const noexcept {
    return mode_ == IsolationMode::pid_namespace;
  }

  /// For a process that ends without running destructors, once nothing is left to kill. The last
  /// process to call it removes the cgroup.
  void remove_cgroup() const noexcept {
    if (cgroup_) cgroup_->remove();
  }

 private:
  explicit Isolation(IsolationMode mode) : mode_(mode) {}

  IsolationMode mode_;
  std::optional<proc::Cgroup> cgroup_;
};

}  // namespace redlock::guard
