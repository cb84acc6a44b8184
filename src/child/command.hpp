#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "child/cgroup.hpp"
#include "child/pid_namespace.hpp"
#include "child/signals.hpp"
#include "support/result.hpp"
#include "support/unique_fd.hpp"

namespace redlock::child {

/// Why a command cannot run, with the exit code that shells use for it.
struct ExecFailure {
  int exit_code;     ///< 127: not found; 126: found, but cannot be executed; 71: fork or the like
                     ///< failed
  std::string text;  ///< one clause, e.g. `deploy.sh: permission denied`; the command's name is
                     ///< escaped for the terminal
};

/// The exit code for a system error.
inline constexpr int cannot_start_code = 71;

/// The program to run: found before the wait, started after it.
struct Command {
  std::string path;                    ///< what to execute; from find_program()
  std::vector<std::string> arguments;  ///< argv, argv[0] included; never touched
};

/// Resolves `name` as execvp(3) does: as it is when it has a slash, else in $PATH (unset:
/// /bin:/usr/bin). 127 when there is no such file, 126 when the file is a directory or not
/// executable by us.
Result<std::string, ExecFailure> find_program(const std::string& name);

/// `name=value` for the command. It is set last and replaces a variable of that name that we
/// inherited.
struct Variable {
  std::string name;
  std::optional<std::string> value;  ///< nothing: the variable is removed
};

/// The environment that we were started with, with `ours` set on top. All other variables,
/// malformed ones too, pass unchanged and in order.
std::vector<std::string> environment_with(const std::vector<Variable>& ours);

struct SpawnOptions {
  std::vector<std::string> environment;
  std::optional<pid_t> join_group;  ///< the process group to join (our job's); nothing: the command
                                    ///< leads its own
  const Cgroup* cgroup = nullptr;   ///< to be put into
  const PidNamespace* pid_namespace = nullptr;  ///< to be born in, with a /proc of its own
  bool is_hook = false;  ///< runs beside the command: without our share of the CPU, and writes to
                         ///< stderr alone
};

/// A command that is forked, in its group, with PDEATHSIG (SIGKILL, the race against our own death
/// closed), and waits for start(). From prepare() on it receives the signals sent to its group and
/// acts on them when it starts, so no signal gets lost between us and it. Dropped before start(),
/// it never runs.
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
  /// descriptors that we inherited (ours are all close-on-exec). A script without `#!` runs under
  /// /bin/sh, as with execvp. A failed exec is reported here (through a close-on-exec socket), not
  /// as a child's exit status. We do not wait for an exec that takes longer than half a second
  /// (stopped by ^Z before it, a dead mount): then the child ends with 126 or 127. From then on the
  /// caller reaps it.
  Result<void, ExecFailure> start();

 private:
  ReadyCommand(Command command, pid_t pid, UniqueFd link);

  Command command_;
  pid_t pid_;  ///< 0: started, or moved from
  UniqueFd
      link_;  ///< a byte starts the command, end of file ends it; why an exec failed comes back
};

}  // namespace redlock::child
