#include "child/descriptors.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <numeric>
#include <system_error>
#include <vector>

#include "child/process_stat.hpp"
#include "support/unique_fd.hpp"

namespace redlock::child {
namespace {

constexpr int first_inherited = STDERR_FILENO + 1;

/// A limit for systems without /proc, high enough for all but contrived programs.
constexpr int guessed_end = 1024;

std::vector<int> open_descriptors() {
  // One of them was open only to read the directory.
  auto descriptors = numbers_in("/proc/self/fd");
  if (!descriptors) {
    descriptors.emplace(guessed_end);
    std::iota(descriptors->begin(), descriptors->end(), 0);
  }
  std::erase_if(*descriptors, [](int fd) { return fd < first_inherited; });
  return std::move(*descriptors);
}

/// Whether the process itself holds a record lock on the file. Such locks conflict with a lock that
/// belongs to a descriptor, so the kernel names the holder; of several it names the first.
bool has_record_lock(int fd) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return ::fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK && lock.l_pid == ::getpid();
}

}  // namespace

void close_inherited(std::optional<int> keep) {
  for (const int fd : open_descriptors()) {
    const int flags = ::fcntl(fd, F_GETFD);
    if (flags >= 0 && (flags & FD_CLOEXEC) == 0 && fd != keep && !has_record_lock(fd)) ::close(fd);
  }
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null) return;
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO}) {
    if (fd != keep && !has_record_lock(fd)) ::dup2(null.get(), fd);
  }
}

void let_go_of_caller() {
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

void require_spare_descriptors(std::size_t count) {
  std::vector<UniqueFd> spare;
  while (spare.size() < count) {
    spare.emplace_back(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, first_inherited));
    if (!spare.back())
      throw std::system_error(errno, std::generic_category(), "cannot open descriptors enough");
  }
}

}  // namespace redlock::child
