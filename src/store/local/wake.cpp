#include "store/local/wake.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "support/digest.hpp"
#include "support/encoding.hpp"
#include "support/kernel_calls.hpp"

namespace redlock::local {
namespace {

constexpr std::string_view fifo_prefix = "wake-";
constexpr std::size_t fifo_name_size = fifo_prefix.size() + 64;

std::string name_of(std::string_view channel) {
  return std::string(fifo_prefix) + sha256_hex(channel);
}

/// Removes the name if it still belongs to this FIFO: another user of the directory may have
/// renamed one of our other files to it.
void remove_name(int directory, const std::string& name, const UniqueFd& fifo) {
  struct stat opened {};
  struct stat named {};
  if (fifo && kernel::fstat(fifo.get(), opened) == 0 && S_ISFIFO(opened.st_mode) &&
      kernel::fstatat(directory, name.c_str(), named, AT_SYMLINK_NOFOLLOW) == 0 &&
      is_same_file(opened, named))
    ::unlinkat(directory, name.c_str(), 0);
}

/// Opens a subscriber's FIFO. Fails with ENXIO if it has no reader: the subscriber was killed.
UniqueFd open_to_write(const Directory& directory, const std::string& name) {
  return UniqueFd(
      ::openat(directory.fd.get(), name.c_str(), O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
}

}  // namespace

Result<Subscription, Fault> Subscription::open(const Directory& directory,
                                               std::string_view channel) {
  // Give it its name only once it has its mode and a reader: a publisher that finds no reader
  // assumes that the subscriber is dead.
  const int place = directory.fd.get();
  const std::string temporary = temporary_name();
  std::string name = name_of(channel);
  if (::mkfifoat(place, temporary.c_str(), S_IRUSR | S_IWUSR) != 0)
    return fault_of_errno("cannot make a FIFO in " + directory.path, errno);
  // Opened for writing, too, so that reads do not return end-of-file when a publisher closes it.
  UniqueFd fifo(::openat(place, temporary.c_str(), O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  UniqueFd kept(::fcntl(place, F_DUPFD_CLOEXEC, 0));
  if (kept && fifo && set_rights(directory, fifo.get(), S_IFIFO) &&
      ::renameat(place, temporary.c_str(), place, name.c_str()) == 0) {
    return Subscription(std::move(kept), std::move(fifo), std::move(name));
  }
  const int error = errno;
  remove_name(place, temporary, fifo);
  return fault_of_naming("cannot make a FIFO in " + directory.path, error);
}

Subscription::Subscription(UniqueFd directory, UniqueFd fifo, std::string name)
    : directory_(std::move(directory)), fifo_(std::move(fifo)), name_(std::move(name)) {}

Subscription::~Subscription() {
  if (directory_) remove_name(directory_.get(), name_, fifo_);
}

std::vector<std::string> Subscription::messages() const {
  // Other users of the directory could write endlessly, so leave the rest for the next call.
  constexpr std::size_t max_bytes = std::size_t{64} * 1024;
  std::string bytes;
  std::array<char, 4096> piece{};
  while (bytes.size() < max_bytes) {
    const ssize_t size = ::read(fifo_.get(), piece.data(), piece.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    bytes.append(piece.data(), static_cast<std::size_t>(size));
  }
  std::vector<std::string> lines;
  std::size_t begin = 0;
  for (std::size_t end = bytes.find('\n'); end != std::string::npos;
       end = bytes.find('\n', begin)) {
    lines.push_back(bytes.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::int64_t publish(const Directory& directory, std::string_view channel,
                     std::string_view message) {
  const std::string name = name_of(channel);
  const UniqueFd fifo = open_to_write(directory, name);
  if (!fifo) {
    if (errno == ENXIO) remove_if_unsubscribed(directory, name);
    return 0;
  }
  struct stat status {};
  if (kernel::fstat(fifo.get(), status) != 0 || !S_ISFIFO(status.st_mode)) return 0;
  const std::string line = std::string(message) + "\n";
  // It is shorter than PIPE_BUF, so it is written completely or not at all. If the pipe is full,
  // the messages in it wake the subscriber just as well.
  return ::write(fifo.get(), line.data(), line.size()) >= 0 || errno == EAGAIN ? 1 : 0;
}

std::int64_t subscribers(const Directory& directory, std::string_view channel) {
  const UniqueFd fifo = open_to_write(directory, name_of(channel));
  struct stat status {};
  return fifo && kernel::fstat(fifo.get(), status) == 0 && S_ISFIFO(status.st_mode) ? 1 : 0;
}

bool is_fifo(std::string_view name) {
  return name.size() == fifo_name_size && name.starts_with(fifo_prefix) &&
         name.find_first_not_of(hex_digits, fifo_prefix.size()) == std::string_view::npos;
}

void remove_if_unsubscribed(const Directory& directory, const std::string& name) {
  struct stat status {};
  // Opening a socket fails with ENXIO, too, so check the type.
  if (kernel::fstatat(directory.fd.get(), name.c_str(), status, AT_SYMLINK_NOFOLLOW) == 0 &&
      S_ISFIFO(status.st_mode) && is_of_locks(directory, status) &&
      !open_to_write(directory, name) && errno == ENXIO)
    ::unlinkat(directory.fd.get(), name.c_str(), 0);
}

}  // namespace redlock::local
