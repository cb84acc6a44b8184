#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "core/exit_code.hpp"
#include "guard/pid_namespace.hpp"
#include "guard/signals.hpp"
#include "proc/cgroup.hpp"
#include "support/result.hpp"
#include "support/unique_fd.hpp"

namespace redlock::guard {

/// Why a command cannot run, with the exit code that shells use for it.
struct ExecFailure {
  ExitCode exit_code;  ///< not_found; not_executable: it was found; os_error: a system call such as
                       ///< fork failed
  std::string text;    ///< one clause, e.g. `deploy.sh: permission denied`; the command's name is
                       ///< escaped for the terminal
  bool may_pass = false;  ///< for want of a process or of memory, which others may give back
};

/// The program to run. It is looked up before the wait for the lock, and started after it.
struct Command {
  std::string path;                    ///< what to execute; from find_program()
  std::vector<std::string> arguments;  ///< argv, argv[0] included; passed on unchanged
};

/// Resolves `name` as execvp(3) does: a name with a slash is taken as it is, any other is searched
/// in $PATH (/bin:/usr/bin when that is unset). Fails with 127 when there is no such file, with 126
/// when the file is a directory or we may not execute it.
Result<std::string, ExecFailure> find_program(const std::string& name);

/// A variable for the command. It replaces a variable of that name that we inherited.
struct Variable {
  std::string name;
  std::optional<std::string> value;  ///< nullopt: the variable is removed
};

/// The environment that we were started with, with `ours` set on top of it. All other entries, even
/// malformed ones, are kept unchanged and in order.
std::vector<std::string> environment_with(const std::vector<Variable>& ours);

struct SpawnOptions {
  std::vector<std::string> environment;
  std::optional<pid_t> join_group;  ///< our job's process group, to join; nullopt: one of its own,
                                    ///< which it does not lead, unless it is a hook
  const proc::Cgroup* cgroup = nullptr;         ///< the cgroup to put it into; may be null
  const PidNamespace* pid_namespace = nullptr;  ///< to be forked into, with its own /proc; or null
  pid_t front = 0;  ///< our front process: LISTEN_PID and WATCHDOG_PID that name it will name the
                    ///< command; 0: they stay as they are
  bool is_hook = false;  ///< it is a --on-stop hook: without our CPU priority, and with stdout
                         ///< redirected to stderr
};

/// A command that was forked and waits for start(). It is in its process group and has a PDEATHSIG
/// of SIGKILL, set without a race against our own death. Signals sent to its group from prepare()
/// on stay pending and take effect when it starts, so none is lost. If it is destroyed before
/// start(), the command never runs.
class ReadyCommand {
 public:
  /// Forks. The calling thread must live as long as the command: PDEATHSIG fires when the forking
  /// *thread* ends.
  static Result<ReadyCommand, ExecFailure> prepare(const Command& command,
                                                   const SpawnOptions& options,
                                                   const InheritedSignals& inherited);

  ReadyCommand(ReadyCommand&&) noexcept;
  ReadyCommand& operator=(ReadyCommand&&) = delete;
  ~ReadyCommand();

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }

  /// Starts the command with the signal mask and dispositions that we were started with, and the
  /// descriptors that we inherited (our own are close-on-exec). A script without `#!` runs under
  /// /bin/sh, as with execvp(3). A failed exec is returned as an error (it comes through a
  /// close-on-exec socket). We wait for the exec for at most half a second: a child that was
  /// stopped by ^Z, or that hangs on a dead mount, may fail later, and then exits with 126 or 127.
  /// After success the caller reaps the child.
  Result<void, ExecFailure> start();

 private:
  ReadyCommand(Command command, pid_t pid, UniqueFd link);

  Command command_;
  pid_t pid_;      ///< 0 once it was started or moved from
  UniqueFd link_;  ///< a byte starts the command, end of file ends it; a failed exec is reported
                   ///< through it
};

}  // namespace redlock::guard
