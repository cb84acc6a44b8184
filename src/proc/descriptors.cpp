#include "proc/descriptors.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "proc/process_stat.hpp"
#include "support/kernel_calls.hpp"
#include "support/unique_fd.hpp"

namespace redlock::proc {
namespace {

constexpr int first_inherited = STDERR_FILENO + 1;

/// How many descriptors to close on a kernel without close_range(2) if no lower limit is set.
constexpr rlim_t fallback_limit = 65536;

/// The highest descriptor that we consider without /proc; high enough for all but contrived
/// programs.
constexpr int guessed_end = 1024;

/// How many descriptors one call of poll(2) checks; usually that covers all that are open.
constexpr std::size_t first_poll_size = 64;

/// Which of the descriptors below `end` are open, found with one call of poll(2); nullopt if that
/// fails, as it does for more than RLIMIT_NOFILE.
std::optional<std::vector<int>> open_below(std::size_t end) {
  std::vector<pollfd> lowest(end);
  for (std::size_t i = 0; i < end; ++i) lowest[i].fd = static_cast<int>(i);
  if (::poll(lowest.data(), end, 0) < 0) return std::nullopt;
  std::vector<int> open;
  for (const pollfd& entry : lowest) {
    if ((entry.revents & POLLNVAL) == 0) open.push_back(entry.fd);
  }
  return open;
}

/// How many descriptors are open; 0 where the kernel does not show it (before Linux 6.2).
std::size_t count_open() {
  struct stat directory {};
  return ::stat("/proc/self/fd", &directory) == 0 ? static_cast<std::size_t>(directory.st_size) : 0;
}

std::vector<int> open_descriptors() {
  auto descriptors = open_below(first_poll_size);
  // The list also contains the descriptor with which the directory was read; it is closed by now.
  if (!descriptors || descriptors->size() != count_open())
    descriptors = numbers_in("/proc/self/fd");
  if (!descriptors) {
    descriptors.emplace(guessed_end);
    std::iota(descriptors->begin(), descriptors->end(), 0);
  }
  std::erase_if(*descriptors, [](int fd) { return fd < first_inherited; });
  return std::move(*descriptors);
}

/// Whether this process holds a record lock on the file. Such a lock conflicts with an open file
/// description lock, so the kernel names its holder (of several, the first).
bool has_record_lock(int fd) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return ::fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK && lock.l_pid == ::getpid();
}

/// A cheap check that one call of poll(2) can do. False means that require_spare_descriptors() must
/// try.
bool has_spare_descriptors(std::size_t count) {
  const std::size_t end = first_inherited + 2 * count;
  const auto open = open_below(end);
  return open && open->size() + count <= end;
}

}  // namespace

InheritedDescriptors InheritedDescriptors::capture() {
  InheritedDescriptors inherited;
  for (const int fd : open_descriptors()) {
    const int flags = ::fcntl(fd, F_GETFD);
    if (flags >= 0 && (flags & FD_CLOEXEC) == 0) inherited.open_.push_back(fd);
  }
  return inherited;
}

void InheritedDescriptors::close(std::optional<int> keep) const {
  for (const int fd : open_) {
    if (fd != keep && !has_record_lock(fd)) ::close(fd);
  }
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null) return;
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO}) {
    if (fd != keep && !has_record_lock(fd)) ::dup2(null.get(), fd);
  }
}

void close_inherited(std::optional<int> keep) {
  InheritedDescriptors::capture().close(keep);
}

void detach_from_caller() {
  close_inherited(std::nullopt);
  const UniqueFd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (null) ::dup2(null.get(), STDERR_FILENO);
}

void close_all_but(int kept) {
  for (const int fd : open_descriptors()) {
    if (fd != kept) ::close(fd);
  }
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fd != kept) ::close(fd);
  }
}

void close_from(int first) noexcept {
  if (close_range(static_cast<unsigned>(first), ~0U, 0) == 0) return;
  rlimit limit{};
  const rlim_t end = ::getrlimit(RLIMIT_NOFILE, &limit) == 0
                         ? std::min(limit.rlim_cur, fallback_limit)
                         : fallback_limit;
  for (int fd = first; fd < static_cast<int>(end); ++fd) ::close(fd);
}

void require_spare_descriptors(std::size_t count) {
  if (has_spare_descriptors(count)) return;
  std::vector<UniqueFd> spare;
  while (spare.size() < count) {
    spare.emplace_back(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, first_inherited));
    if (!spare.back()) throw_errno("not enough file descriptors");
  }
}

}  // namespace redlock::proc
