#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <memory>

#include "guard/pid_namespace.hpp"

namespace redlock::guard {

/// A process that leads the process group of the command, and does nothing else. So the command is
/// no leader: setsid(1) then becomes the job instead of forking it and returning at once, as it
/// would without us. It is forked after the command, which so stays the oldest child of the holder
/// process (proc/ancestry). The leader blocks all signals and holds no descriptor. It ends with its
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

  /// Moves a child of ours, which has not called exec yet, into the group. False: it cannot
  /// (errno).
  [[nodiscard]] bool lead(pid_t child) const noexcept { return ::setpgid(child, pid_) == 0; }

  /// Also the number of its group.
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

  /// Tells it to end, and does not wait for that: it may take long to get a CPU.
  void end() noexcept;

  /// Another one has reaped it, so its pid may be reused.
  void was_reaped() noexcept { pid_ = 0; }

 private:
  explicit GroupLeader(pid_t pid) : pid_(pid) {}

  pid_t pid_;  ///< 0: it was reaped
};

}  // namespace redlock::guard
