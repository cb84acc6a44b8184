#include "guard/notice.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include <functional>
#include <future>
#include <memory>
#include <system_error>
#include <thread>

#include "support/boot_clock.hpp"
#include "support/kernel_calls.hpp"
#include "support/line_writer.hpp"
#include "support/syslog.hpp"

namespace redlock::guard {
namespace {

/// Long enough for a healthy system. A log daemon that hangs, perhaps because the same network is
/// down, must not delay the stop of a process whose lease is lost.
constexpr Milliseconds max_delay{100};

/// The interval between attempts to write to a busy log.
constexpr Milliseconds log_interval{5};

void write_to_stderr_of(pid_t pid, const UniqueFd& pidfd, const std::string& line) {
  // A duplicate of its own descriptor, if permitted: it shares the file offset, so that later
  // output follows our line even in a file that was opened with `>`.
  UniqueFd file(pidfd_getfd(pidfd.get(), STDERR_FILENO, 0));
  // Reopening uses our privileges, which must not exceed those of the process.
  const std::string place = "/proc/" + std::to_string(pid);
  struct stat info {};
  if (!file && kernel::stat(place.c_str(), info) == 0 && info.st_uid == kernel::effective_user()) {
    const std::string path = place + "/fd/2";
    file.reset(::open(path.c_str(), O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  }
  pollfd ended{pidfd.get(), POLLIN, 0};
  // If the process has ended, its pid may have been reused by now.
  if (!file || ::poll(&ended, 1, 0) != 0) return;
  LineWriter(file.get()).write(line);
}

/// Runs `work`, which may block for ever, in a thread of its own, or in this thread if none can be
/// started.
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

void post_notice(const proc::WatchedProcess& process, const std::string& text) {
  const auto last = BootClock::now() + max_delay;
  const auto logged = begin([text, last] {
    while (!write_to_syslog(LOG_ERR, text) && BootClock::now() < last)
      std::this_thread::sleep_for(log_interval);
  });
  // The thread may hang and outlive `process`, so it gets its own descriptor.
  const auto pidfd = std::make_shared<UniqueFd>(::fcntl(process.fd(), F_DUPFD_CLOEXEC, 0));
  const auto written = begin([pid = process.pid(), pidfd, line = "redlock-cli: " + text + "\n"] {
    write_to_stderr_of(pid, *pidfd, line);
  });
  logged.wait_until(last);
  written.wait_until(last);
}

}  // namespace redlock::guard
