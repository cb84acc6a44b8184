#pragma once

#include <sys/types.h>

#include <string>

#include "support/result.hpp"
#include "support/unique_fd.hpp"

namespace redlock::child {

/// A pid namespace for the command, with an init of our own. When init ends, the kernel kills
/// everything in the namespace; and init ends when we do, for whatever reason. So no process of the
/// command outlives us, even when no guard is left to kill it.
///
/// The command is not init's child but ours, born into the namespace beside init. We know its pid,
/// group, status and resource usage as those of any child, and a signal reaches it directly. It is
/// no PID 1, for which signals have no default action. Only its orphans go to init, which does
/// nothing but reap them. (So its getppid() is 0, as in a container.)
///
/// Single-threaded use; needs CAP_SYS_ADMIN and /proc.
class PidNamespace {
 public:
  /// Makes a namespace and its init, a child of ours. The calling thread must live as long as the
  /// command. The error is one clause that says why not.
  static Result<PidNamespace, std::string> create();

  /// Checks whether create(), fork() and mount_proc() work here, and leaves nothing behind. The
  /// error is one clause that says why not, and what to do. SIGCHLD must not be ignored.
  static Result<void, std::string> check();

  /// On destruction init ends by itself, because we are its lifeline. It is reaped like any child.
  PidNamespace(PidNamespace&&) noexcept = default;
  PidNamespace& operator=(PidNamespace&&) = delete;

  /// Ends the namespace and reaps init. Only while nothing runs in it: it waits until every process
  /// of it is dead.
  void end() noexcept;

  /// The pid of init as we see it. Init acts on KILL alone (and on STOP, which does not matter).
  [[nodiscard]] pid_t init() const noexcept { return init_; }

  /// fork(2), with the child in the namespace. Fails with ENOMEM when init has ended.
  [[nodiscard]] pid_t fork() const noexcept;

  /// In such a child: mounts a /proc of its own namespace, in a mount namespace of its own; root
  /// and working directory stay. Every other mount that it makes or sees is as without us.
  /// Async-signal-safe. 0, or why not (errno).
  [[nodiscard]] static int mount_proc() noexcept;

 private:
  PidNamespace(pid_t init, UniqueFd lifeline, UniqueFd ours, UniqueFd theirs);

  pid_t init_;
  UniqueFd lifeline_;  ///< init reads end of file
  UniqueFd ours_;      ///< the namespace that we are in
  UniqueFd theirs_;
};

}  // namespace redlock::child
