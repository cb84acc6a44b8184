#include "guard/command.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <utility>

#include "proc/cpu_share.hpp"
#include "support/kernel_calls.hpp"
#include "support/text.hpp"
#include "support/unique_fd.hpp"

namespace redlock::guard {
namespace {

// The default of glibc and musl when $PATH is unset.
constexpr const char* default_path = "/bin:/usr/bin";
constexpr const char* shell_path = "/bin/sh";

// A stop signal from the terminal, or a dead mount, can block the child between fork and exec for
// ever, while the caller must renew a lease.
constexpr int exec_timeout_ms = 500;

constexpr int max_pid_digits = std::numeric_limits<pid_t>::digits10 + 1;

ExecFailure failure(ExitCode exit_code, const std::string& name, const std::string& reason) {
  return {exit_code, escape_for_terminal(name) + ": " + reason};
}

bool means_absent(int error) {
  return error == ENOENT || error == ENOTDIR || error == ENAMETOOLONG || error == ELOOP;
}

ExecFailure not_found(const std::string& name) {
  return failure(ExitCode::not_found, name, "not found");
}

/// Returns `path` if it can be executed; `name` is how the user called it.
Result<std::string, ExecFailure> check_program(const std::string& path, const std::string& name) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    return unexpected(means_absent(errno)
                          ? not_found(name)
                          : failure(ExitCode::not_executable, name, errno_text(errno)));
  }
  if (S_ISDIR(info.st_mode))
    return unexpected(failure(ExitCode::not_executable, name, "is a directory"));
  if (!S_ISREG(info.st_mode))
    return unexpected(failure(ExitCode::not_executable, name, "is not a regular file"));
  if (!may_access(path.c_str(), X_OK))
    return unexpected(failure(ExitCode::not_executable, name, errno_text(errno)));
  return path;
}

/// An empty element of $PATH means the current directory. The `./` keeps a name such as `-x` from
/// being taken for an option of the shell.
std::string in_directory(std::string_view directory, const std::string& name) {
  return (directory.empty() ? std::string(".") : std::string(directory)) + "/" + name;
}

Result<std::string, ExecFailure> search_path(std::string_view directories,
                                             const std::string& name) {
  ExecFailure worst = not_found(name);
  for (bool more = true; more;) {
    const auto colon = directories.find(':');
    const std::string candidate = in_directory(directories.substr(0, colon), name);
    auto found = check_program(candidate, name);
    if (found) return found;
    // A directory that we may not search does not prove that the program exists; only a file that
    // exists makes the exit code 126.
    struct stat info {};
    const bool may_exist = found.error().exit_code != ExitCode::not_found;
    if (may_exist && worst.exit_code == ExitCode::not_found &&
        ::stat(candidate.c_str(), &info) == 0)
      worst = found.error();
    more = colon != std::string_view::npos;
    if (more) directories.remove_prefix(colon + 1);
  }
  return unexpected(worst);
}

/// Pointers for execve(2), which does not modify the strings, despite its signature.
std::vector<char*> pointers_to(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const auto& string : strings) pointers.push_back(const_cast<char*>(string.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

/// What execvp(3) runs for a file in a format that the kernel does not know: the shell, with the
/// file and the arguments after argv[0].
std::vector<std::string> shell_arguments(const Command& command) {
  std::vector<std::string> arguments{
      shell_path, command.path.starts_with('-') ? "./" + command.path : command.path};
  if (!command.arguments.empty())
    arguments.insert(arguments.end(), command.arguments.begin() + 1, command.arguments.end());
  return arguments;
}

/// All that the child needs, allocated before the fork: in the child, a malloc lock that another
/// thread held may stay locked for ever.
struct Prepared {
  explicit Prepared(const Command& command, const SpawnOptions& options)
      : path(command.path.c_str()),
        shell_strings(shell_arguments(command)),
        arguments(pointers_to(command.arguments)),
        shell(pointers_to(shell_strings)),
        variables(options.environment) {
    if (options.front != 0) leave_room_for_pid(options.front);
    environment = pointers_to(variables);
  }

  /// In the child: completes the variables that name it.
  void write_pid() const noexcept {
    for (char* const digits : own_pid)
      *std::to_chars(digits, digits + max_pid_digits, ::getpid()).ptr = '\0';
  }

  const char* path;
  std::vector<std::string> shell_strings;
  std::vector<char*> arguments;
  std::vector<char*> shell;
  std::vector<std::string> variables;
  std::vector<char*> own_pid;  ///< where in the variables the child's own pid belongs
  std::vector<char*> environment;

 private:
  /// Only the process that these variables name uses what they announce: sd_listen_fds(3),
  /// sd_watchdog_enabled(3).
  void leave_room_for_pid(pid_t front) {
    const std::string sockets = "LISTEN_PID=" + std::to_string(front);
    const std::string watchdog = "WATCHDOG_PID=" + std::to_string(front);
    // The same process once more, by the inode of its pidfd, which the child cannot know before it
    // exists.
    if (std::ranges::find(variables, sockets) != variables.end()) {
      std::erase_if(variables, [](const std::string& variable) {
        return variable.starts_with("LISTEN_PIDFDID=");
      });
    }
    for (std::string& variable : variables) {
      if (variable != sockets && variable != watchdog) continue;
      const auto digits = variable.find('=') + 1;
      variable.resize(digits + max_pid_digits + 1);
      own_pid.push_back(variable.data() + digits);
    }
  }
};

constexpr ExitCode exit_code_of(int error) noexcept {
  return error == ENOENT ? ExitCode::not_found : ExitCode::not_executable;
}

/// Why a child could not become the command.
struct ChildError {
  enum class Step : int { none, mount_proc, exec };
  Step step;
  int error;  ///< errno
};

/// Async-signal-safe, like all code that runs in the child.
[[noreturn]] void report_and_exit(int report_to, ChildError child_error) noexcept {
  // The parent may have timed out and closed its end; then only the exit code reports the failure.
  ::signal(SIGPIPE, SIG_IGN);
  [[maybe_unused]] const auto written = ::write(report_to, &child_error, sizeof child_error);
  ::_exit(to_int(child_error.step == ChildError::Step::exec ? exit_code_of(child_error.error)
                                                            : ExitCode::os_error));
}

/// The child's connection to its parent.
struct ChildLink {
  pid_t parent;  ///< as getppid() gives it
  int socket;  ///< reads a byte to start, or end of file to give up; a ChildError is written to it
};

[[noreturn]] void exec_command(const Prepared& prepared, const SpawnOptions& options,
                               const InheritedSignals& inherited, const ChildLink& link) noexcept {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  // A parent that died before the prctl no longer triggers the signal. (In a pid namespace
  // getppid() is always 0; there the death of its init kills the child.)
  if (::getppid() != link.parent) ::_exit(to_int(ExitCode::os_error));

  inherited.restore_dispositions();
  if (options.is_hook) {
    proc::give_up_cpu_share();
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
  }
  if (options.pid_namespace != nullptr) {
    if (const int error = PidNamespace::mount_proc(); error != 0)
      report_and_exit(link.socket, {ChildError::Step::mount_proc, error});
  }

  char byte = 0;
  ssize_t got = 0;
  do {
    got = ::read(link.socket, &byte, 1);
  } while (got < 0 && errno == EINTR);
  if (got != 1) ::_exit(to_int(ExitCode::os_error));

  prepared.write_pid();

  // Done last: a signal that has been pending since the fork must find the dispositions that the
  // command starts with.
  inherited.restore_mask();
  ::execve(prepared.path, prepared.arguments.data(), prepared.environment.data());
  if (errno == ENOEXEC) ::execve(shell_path, prepared.shell.data(), prepared.environment.data());
  report_and_exit(link.socket, {ChildError::Step::exec, errno});
}

void reap(pid_t child) noexcept {
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
}

/// Moves the child into a process group of its own that it does not lead, so that setsid(1) need
/// not fork. The process that leads it ends at once, and is a zombie when the child joins: from
/// then on the group has a member, so its number is not reused. False: it cannot be done (errno).
bool move_to_own_group(pid_t child, const PidNamespace* pid_namespace) noexcept {
  const pid_t leader = pid_namespace != nullptr ? pid_namespace->fork() : ::fork();
  if (leader == 0) ::_exit(0);
  if (leader < 0) return false;
  const bool moved = ::setpgid(leader, leader) == 0 && ::setpgid(child, leader) == 0;
  const int error = errno;
  reap(leader);
  errno = error;
  return moved;
}

/// Step::none when the exec succeeded, the child died before it, or it takes too long.
ChildError wait_for_exec(int report_from) noexcept {
  constexpr ChildError none{ChildError::Step::none, 0};
  pollfd readable{report_from, POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&readable, 1, exec_timeout_ms);
  } while (ready < 0 && errno == EINTR);
  if (ready <= 0) return none;
  ChildError child_error = none;
  ssize_t got = 0;
  do {
    got = ::read(report_from, &child_error, sizeof child_error);
  } while (got < 0 && errno == EINTR);
  return got == static_cast<ssize_t>(sizeof child_error) ? child_error : none;
}

ExecFailure cannot_start(const Command& command, const char* what, int error) {
  return failure(ExitCode::os_error, command.path, std::string(what) + ": " + errno_text(error));
}

ExecFailure explain(const Command& command, ChildError child_error) {
  const int error = child_error.error;
  if (child_error.step == ChildError::Step::mount_proc)
    return cannot_start(command, "cannot mount a /proc for its pid namespace", error);
  // The kernel also reports ENOENT for a missing interpreter or loader; shells exit with 126 then.
  if (error == ENOENT && ::access(command.path.c_str(), F_OK) == 0) {
    return failure(ExitCode::not_executable, command.path, "its interpreter is missing");
  }
  if (error == ENOENT) return not_found(command.path);
  return failure(ExitCode::not_executable, command.path, errno_text(error));
}

}  // namespace

Result<std::string, ExecFailure> find_program(const std::string& name) {
  if (name.empty()) return unexpected(failure(ExitCode::not_found, "''", "not found"));
  if (name.find('/') != std::string::npos) return check_program(name, name);
  const char* const directories = std::getenv("PATH");
  return search_path(directories != nullptr ? directories : default_path, name);
}

std::vector<std::string> environment_with(const std::vector<Variable>& ours) {
  const auto replaced = [&ours](std::string_view entry) {
    return std::any_of(ours.begin(), ours.end(), [entry](const Variable& variable) {
      return entry.size() > variable.name.size() && entry[variable.name.size()] == '=' &&
             entry.starts_with(variable.name);
    });
  };
  std::vector<std::string> environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    if (!replaced(*entry)) environment.emplace_back(*entry);
  }
  for (const auto& variable : ours) {
    if (variable.value) environment.push_back(variable.name + "=" + *variable.value);
  }
  return environment;
}

ReadyCommand::ReadyCommand(Command command, pid_t pid, UniqueFd link)
    : command_(std::move(command)), pid_(pid), link_(std::move(link)) {}

ReadyCommand::ReadyCommand(ReadyCommand&& other) noexcept
    : command_(std::move(other.command_)),
      pid_(std::exchange(other.pid_, 0)),
      link_(std::move(other.link_)) {}

ReadyCommand::~ReadyCommand() {
  if (pid_ == 0) return;
  link_.reset();
  ::kill(pid_, SIGKILL);  // even if stopped
  reap(pid_);
}

Result<ReadyCommand, ExecFailure> ReadyCommand::prepare(const Command& command,
                                                        const SpawnOptions& options,
                                                        const InheritedSignals& inherited) {
  Prepared prepared(command, options);  // its variables are written to in the child
  // Used in both directions: the child waits for our byte, then reports an error, or closes its end
  // by its exec.
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return unexpected(cannot_start(command, "cannot make a socket", errno));
  UniqueFd ours(ends[0]);
  const UniqueFd of_child(ends[1]);

  // Block all signals: one that arrives before the child has the command's dispositions and mask
  // stays pending until then.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);

  const pid_t parent = options.pid_namespace != nullptr ? 0 : ::getpid();
  const pid_t child = options.pid_namespace != nullptr ? options.pid_namespace->fork() : ::fork();
  const int error = errno;
  if (child == 0) {
    ours.reset();  // else the child would never read end of file
    exec_command(prepared, options, inherited, {parent, of_child.get()});
  }
  // Not in the child: in a pid namespace, groups have other numbers. A hook leads its group, by
  // which it is killed.
  const auto set_group = [&] {
    if (!options.join_group && !options.is_hook)
      return move_to_own_group(child, options.pid_namespace);
    return ::setpgid(child, options.join_group.value_or(child)) == 0;
  };
  const bool is_grouped = child > 0 && set_group();
  const int group_error = errno;
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  if (child < 0) {
    ExecFailure no_fork = cannot_start(command, "cannot fork", error);
    // In a pid namespace without its init, ENOMEM is lasting.
    no_fork.may_pass = error == EAGAIN || (error == ENOMEM && options.pid_namespace == nullptr);
    return unexpected(std::move(no_fork));
  }

  ReadyCommand ready(command, child, std::move(ours));
  if (!is_grouped) {
    ExecFailure no_group = cannot_start(command, "cannot make a process group", group_error);
    no_group.may_pass = group_error == EAGAIN || group_error == ENOMEM;
    return unexpected(std::move(no_group));
  }

  // Before it runs, so that none of its children is ever outside the cgroup.
  if (options.cgroup != nullptr) {
    if (const int refused = options.cgroup->add(child); refused != 0) {
      return unexpected(cannot_start(command, "cannot put it into its cgroup", refused));
    }
  }
  return ready;
}

Result<void, ExecFailure> ReadyCommand::start() {
  const pid_t child = std::exchange(pid_, 0);
  const char byte = 1;
  // This cannot block: the socket is empty. An error means that the child is dead.
  [[maybe_unused]] const auto written = ::send(link_.get(), &byte, 1, MSG_NOSIGNAL);
  const ChildError child_error = wait_for_exec(link_.get());
  if (child_error.step == ChildError::Step::none) return {};
  reap(child);
  return unexpected(explain(command_, child_error));
}

}  // namespace redlock::guard
