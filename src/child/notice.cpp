#include "child/notice.hpp"

#include <fcntl.h>
#include <poll.h>
#include <syslog.h>
#include <unistd.h>
// glibc 2.36 forgot to say so itself.
extern "C" {
#include <sys/pidfd.h>
}

#include <functional>
#include <future>
#include <memory>
#include <system_error>
#include <thread>

#include "support/boot_clock.hpp"

namespace redlock::child {
namespace {

/// Enough for what works; what hangs (a log daemon, a log on a network that is gone, as the servers
/// may be) must not keep a process running whose lease is lost.
constexpr Milliseconds max_delay{100};

void write_to_syslog(const std::string& text) {
  ::openlog("redlock-cli", LOG_PID, LOG_USER);
  ::syslog(LOG_ERR, "%s", text.c_str());
}

void write_to_stderr_of(pid_t pid, const UniqueFd& pidfd, const std::string& line) {
  // Its own descriptor if we may: what it writes afterwards comes behind our line also in a file
  // that it opened with `>`.
  UniqueFd file(::pidfd_getfd(pidfd.get(), STDERR_FILENO, 0));
  if (!file) {
    const std::string path = "/proc/" + std::to_string(pid) + "/fd/2";
    file.reset(::open(path.c_str(), O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  }
  pollfd ended{pidfd.get(), POLLIN, 0};
  if (!file || ::poll(&ended, 1, 0) != 0) return;  // it has ended: the pid may be another's by now
  (void)!::write(file.get(), line.data(), line.size());
}

/// Runs `work`, which may block for ever, in a thread of its own; here where there can be none.
std::future<void> begin(std::function<void()> work) {
  auto task = std::make_shared<std::packaged_task<void()>>(std::move(work));
  auto done = task->get_future();
  try {
    std::thread([task] { (*task)(); }).detach();
  } catch (const std::system_error&) {
    (*task)();
  }
  return done;
}

}  // namespace

void post_notice(const WatchedProcess& process, const std::string& text) {
  const auto last = std::chrono::steady_clock::now() + max_delay;
  const auto logged = begin([text] { write_to_syslog(text); });
  // What hangs may outlive the process and what we know of it.
  const auto pidfd = std::make_shared<UniqueFd>(::fcntl(process.fd(), F_DUPFD_CLOEXEC, 0));
  const auto written = begin([pid = process.pid(), pidfd, line = "redlock-cli: " + text + "\n"] {
    write_to_stderr_of(pid, *pidfd, line);
  });
  logged.wait_until(last);
  written.wait_until(last);
}

}  // namespace redlock::child
