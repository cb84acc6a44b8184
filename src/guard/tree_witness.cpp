#include "guard/tree_witness.hpp"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

#include "guard/signals.hpp"
#include "proc/descriptors.hpp"
#include "proc/process_stat.hpp"
#include "proc/signal_state.hpp"
#include "proc/title.hpp"
#include "support/trace.hpp"

namespace redlock::guard {
namespace {

/// When it is started: later than most short commands end, and sooner than a person or a tool that
/// has seen the command start ends it again.
constexpr Milliseconds start_delay{250};

/// When it is started again after a signal has ended it.
constexpr Milliseconds restart_delay{200};

/// When to check whether it runs its program; twice as long after each check that fails.
constexpr Milliseconds check_delay{20};
constexpr Milliseconds max_check_delay{1000};

/// Its descriptor for the program's file, which the exec closes. After an exec through it, the
/// kernel makes its number the name of the process: proc::tree_witness_name.
constexpr int program_fd = 3;

struct File {
  dev_t device;
  ino_t number;

  bool operator==(const File&) const = default;
};

std::optional<File> file_at(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  return File{info.st_dev, info.st_ino};
}

std::string in_proc(pid_t pid, std::string_view name) {
  return "/proc/" + std::to_string(pid) + "/" + std::string(name);
}

/// The users of a process, as its status has them; empty when it cannot be read.
std::string users_of(pid_t pid) {
  const auto status = proc::read_proc_file(in_proc(pid, "status"));
  const auto begin = status ? status->find("\nUid:") : std::string::npos;
  if (begin == std::string::npos) return {};
  return status->substr(begin, status->find('\n', begin + 1) - begin);
}

/// Async-signal-safe. Nothing but its place in the tree may connect it with our other processes. Or
/// a program that signals all that have something in common would seem to walk the tree: a word of
/// their command lines (`pkill -f lock`), or their directory (`fuser -k`).
[[noreturn]] void become_witness(pid_t parent, int program, int input, int null) noexcept {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (::getppid() != parent || ::chdir("/") != 0) ::_exit(0);
  constexpr rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);

  ::dup2(input, STDIN_FILENO);
  ::dup2(null, STDOUT_FILENO);
  ::dup2(null, STDERR_FILENO);
  // By its descriptor, so that its name in /proc is a number: who looks for "cat" misses it.
  if (program != program_fd && ::dup3(program, program_fd, O_CLOEXEC) < 0) ::_exit(0);
  proc::close_from(program_fd + 1);

  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const std::array<const char*, 2> arguments{"cat", nullptr};
  const std::array<const char*, 1> environment{nullptr};
  ::execve("/proc/self/fd/3", const_cast<char* const*>(arguments.data()),
           const_cast<char* const*>(environment.data()));
  ::_exit(0);
}

}  // namespace

void TreeWitness::begin(Instant now) {
  next_ = now + start_delay;
}

pid_t TreeWitness::tend(Instant now) {
  if (now < next_) return 0;
  next_ = Instant::max();
  if (pid_ == 0) {
    if (!start()) return 0;
    check_delay_ = check_delay;
    next_ = now + check_delay_;
    return pid_;
  }
  is_ready_ = runs_its_program();
  if (is_ready_ && is_traced()) trace("signal", "the tree witness is ready");
  check_delay_ *= 2;
  if (!is_ready_ && check_delay_ <= max_check_delay) next_ = now + check_delay_;
  return 0;
}

/// False: it cannot be started.
bool TreeWitness::start() {
  program_.reset(::open(proc::tree_witness_program, O_PATH | O_CLOEXEC));
  const UniqueFd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  std::array<int, 2> ends{};
  if (!program_ || !null || ::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
  const UniqueFd input(ends[0]);
  lifeline_.reset(ends[1]);

  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) become_witness(parent, program_.get(), input.get(), null.get());
  if (child < 0) return false;
  pid_ = child;
  return true;
}

/// A signal that was sent before may still have been meant for our program, as it ran that.
bool TreeWitness::runs_its_program() const {
  const auto program = file_at(in_proc(::getpid(), "fd/" + std::to_string(program_.get())));
  if (!program || file_at(in_proc(pid_, "exe")) != program) return false;
  const auto state = proc::signal_state(pid_);
  return state && !state->is_dying && state->is_settled && state->pending == 0;
}

void TreeWitness::note_end(const Ended& ended, Instant now) {
  if (ended.pid != pid_ || pid_ == 0) return;
  note_status(ended.status, now);
  if (WIFSIGNALED(ended.status)) next_ = now + restart_delay;
}

void TreeWitness::note_status(int status, Instant now) {
  const bool was_ready = std::exchange(is_ready_, false);
  pid_ = 0;
  next_ = Instant::max();
  if (!was_ready || !WIFSIGNALED(status) || WTERMSIG(status) == SIGKILL) return;
  death_ = Death{WTERMSIG(status), now};
  if (is_traced()) trace("signal", "the tree witness died of " + signal_name(death_->signal));
}

pid_t TreeWitness::end(Instant now) {
  next_ = Instant::max();
  const pid_t pid = pid_;
  if (pid == 0) return 0;
  // If it has been reaped elsewhere, its pid may be reused.
  siginfo_t info{};
  constexpr int peek = WEXITED | WNOHANG | WNOWAIT;
  if (::waitid(P_PID, static_cast<id_t>(pid), &info, peek) != 0) return std::exchange(pid_, 0);
  // The first deadly signal decides of what it dies.
  ::kill(pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  note_status(status, now);
  return pid;
}

bool TreeWitness::saw(int signal, Instant now) {
  if (!death_ || death_->signal != signal) return false;
  const bool recent = now - death_->at <= twin_memory;
  death_.reset();
  return recent;
}

bool TreeWitness::resembles(pid_t pid) const {
  const pid_t us = ::getpid();
  // No program selects this process and the front process by session, if this one has left it.
  const bool same_session = ::getsid(0) == us || ::getsid(pid) == ::getsid(0);
  const auto exe = file_at(in_proc(pid, "exe"));
  const auto program = file_at(in_proc(us, "fd/" + std::to_string(program_.get())));
  const auto cgroup = proc::read_proc_file(in_proc(pid, "cgroup"));
  const std::string users = users_of(pid);
  return same_session && exe && program && exe->device == program->device && !users.empty() &&
         users == users_of(us) && cgroup && cgroup == proc::read_proc_file(in_proc(us, "cgroup"));
}

}  // namespace redlock::guard
