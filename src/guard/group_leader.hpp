#pragma once

#include <sys/types.h>

#include <memory>

#include "guard/pid_namespace.hpp"

namespace redlock::guard {

/// A process that leads the process group of the command, and does nothing else. So the command is
/// no leader: setsid(1) then becomes the job instead of forking it and returning at once, as it
/// would without us. The leader blocks all signals and holds no descriptor. It ends with its
/// parent.
class GroupLeader {
 public:
  /// Forks it as a child of the calling thread, into `pid_namespace` unless that is null. Null if
  /// it could not be forked (errno).
  static std::unique_ptr<GroupLeader> fork(const PidNamespace* pid_namespace);

  /// Ends and reaps the process. As long as the group has members, its number is not reused.
  ~GroupLeader();
  GroupLeader(const GroupLeader&) = delete;
  GroupLeader& operator=(const GroupLeader&) = delete;

  /// Also the number of its group.
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

  /// Another one has reaped it, so its pid may be reused.
  void was_reaped() noexcept { pid_ = 0; }

 private:
  explicit GroupLeader(pid_t pid) : pid_(pid) {}

  pid_t pid_;  ///< 0: there is none
};

}  // namespace redlock::guard
