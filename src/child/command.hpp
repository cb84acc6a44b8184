#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "child/signals.hpp"
#include "support/result.hpp"

namespace redlock::child {

/// Why a command cannot run, with the exit code that shells use for it.
struct ExecFailure {
  int exit_code;     ///< 127: not found; 126: found, but cannot be executed; 71: fork or the like failed
  std::string text;  ///< one clause, e.g. `deploy.sh: permission denied`; the command's name is escaped for the terminal
};

/// What to run: found before the wait, started after it.
struct Command {
  std::string path;                    ///< what to execute; from find_program()
  std::vector<std::string> arguments;  ///< argv, argv[0] included; never touched
};

/// Looks `name` up as execvp(3) does: as it is when it has a slash, else in $PATH (unset: /bin:/usr/bin). 127 when there is no such
/// file, 126 when there is one but it is a directory or not executable by us.
Result<std::string, ExecFailure> find_program(const std::string& name);

/// `name=value` for the command, set last, replacing what we inherited under that name.
struct Variable {
  std::string name;
  std::string value;
};

/// The environment we were started with, with `ours` set on top. Every other variable, odd ones too, passes untouched and in order.
std::vector<std::string> environment_with(const std::vector<Variable>& ours);

struct SpawnOptions {
  std::vector<std::string> environment;
  bool own_group = false;  ///< lead a process group of its own (no controlling terminal), else stay in ours
};

/// Starts the command: its signal mask and dispositions are those that we were started with (`inherited`), its descriptors those that
/// we inherited (ours are all close-on-exec), PDEATHSIG is SIGKILL with the race against our own death closed. A script without `#!`
/// runs under /bin/sh, as with execvp. A failed exec is reported here (through a close-on-exec pipe), not as a child's exit status; only
/// when it takes longer than half a second (stopped by ^Z before it, a dead mount) do we not wait: then the child ends with 126 or 127.
/// The calling thread must live as long as the command: PDEATHSIG fires when the forking *thread* ends.
Result<pid_t, ExecFailure> spawn(const Command& command, const SpawnOptions& options, const InheritedSignals& inherited);

}  // namespace redlock::child
