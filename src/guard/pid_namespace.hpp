#pragma once

#include <sys/types.h>

#include <string>

#include "support/result.hpp"
#include "support/unique_fd.hpp"

namespace redlock::guard {

/// A pid namespace for the command, with an init of our own. When init ends, the kernel kills every
/// process in the namespace; and init ends when we do, for whatever reason. So no process of the
/// command outlives us, even when no guard is left to kill it.
///
/// The command is our child, not init's: it is forked into the namespace beside init. We know its
/// pid, group, status and resource usage as of any child, and can signal it directly. It is not PID
/// 1, for which signals have no default action. Only its orphans go to init, which does nothing but
/// reap them. (Its getppid() is 0, as in a container.)
///
/// Single-threaded use; needs CAP_SYS_ADMIN and /proc.
class PidNamespace {
 public:
  /// Makes a namespace and its init, a child of ours. The calling thread must live as long as the
  /// command. The error is one clause that names the cause.
  static Result<PidNamespace, std::string> create();

  /// Checks whether create(), fork() and mount_proc() work here, and cleans up. The error is one
  /// clause that names the cause and the remedy. SIGCHLD must not be ignored.
  static Result<void, std::string> check();

  /// On destruction init ends, because the lifeline closes. It must be reaped like any child.
  PidNamespace(PidNamespace&&) noexcept = default;
  PidNamespace& operator=(PidNamespace&&) = delete;

  /// Ends the namespace and reaps init. Blocks until every process in it is dead, so call it only
  /// when none is running.
  void end() noexcept;

  /// The pid of init as we see it. From outside, it can only be killed or stopped; stopping it does
  /// no harm.
  [[nodiscard]] pid_t init() const noexcept { return init_; }

  /// fork(2), with the child in the namespace. Fails with ENOMEM when init has ended.
  [[nodiscard]] pid_t fork() const noexcept;

  /// In such a child: mounts the /proc of its pid namespace, in a mount namespace of its own. Root
  /// and working directory stay the same, and all other mounts propagate as before.
  /// Async-signal-safe. Returns 0 or an errno value.
  [[nodiscard]] static int mount_proc() noexcept;

 private:
  PidNamespace(pid_t init, UniqueFd lifeline, UniqueFd ours, UniqueFd theirs);

  pid_t init_;
  UniqueFd lifeline_;  ///< init reads end of file from its other end when we end
  UniqueFd ours_;      ///< our own namespace
  UniqueFd theirs_;    ///< the new one
};

}  // namespace redlock::guard
