#pragma once

#include <optional>
#include <string>

#include "child/cgroup.hpp"
#include "support/result.hpp"

namespace redlock::child {

enum class IsolationMode {
  none,
  cgroup,         ///< killed as one
  pid_namespace,  ///< dead when we are, whatever happens to us
};

/// What the command is shut in, besides its place in our tree. Made before front and holder part and before the wait, so that what cannot
/// work here is known before anything is locked.
class Isolation {
 public:
  /// Else one clause that says why not, and what to do. SIGCHLD must not be ignored.
  static Result<Isolation, std::string> make(IsolationMode mode, bool has_terminal);

  /// The cgroup that commands are put into; none in other modes.
  [[nodiscard]] const Cgroup* cgroup() const noexcept { return cgroup_ ? &*cgroup_ : nullptr; }

  /// Whether each command gets a pid namespace. The holder makes it: init must be its child.
  [[nodiscard]] bool wants_pid_namespace() const noexcept { return mode_ == IsolationMode::pid_namespace; }

  /// For a process that ends without destructors, when nothing is left to be killed. Whoever is last clears away.
  void clear_away() const noexcept {
    if (cgroup_) cgroup_->remove();
  }

 private:
  explicit Isolation(IsolationMode mode) : mode_(mode) {}

  IsolationMode mode_;
  std::optional<Cgroup> cgroup_;
};

}  // namespace redlock::child
