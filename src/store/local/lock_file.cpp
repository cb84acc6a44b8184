#include "store/local/lock_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "support/encoding.hpp"
#include "support/kernel_calls.hpp"

namespace redlock::local {
namespace {

/// How often a file may vanish between opening and locking it, before the file counts as busy.
constexpr int max_reopenings = 3;

bool write_all_at(int fd, std::string_view bytes, std::size_t offset) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
    offset += static_cast<std::size_t>(written);
  }
  return true;
}

bool read_all_at(int fd, std::size_t offset, std::span<char> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::pread(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::size_t>(got);
  }
  return true;
}

constexpr std::size_t file_name_size = 64;

std::string path_of(const Directory& directory, const std::string& name) {
  return directory.path + "/" + name;
}

/// A write beyond RLIMIT_FSIZE would end the process with SIGXFSZ.
Result<void, Fault> check_size_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= format::file_size) return {};
  return unexpected(
      Fault{FaultKind::misconfigured, "the limit for the size of files (ulimit -f) is below the " +
                                          std::to_string(format::file_size) + " bytes needed"});
}

}  // namespace

Result<void, Fault> LockFile::make(const Directory& directory, const std::string& name,
                                   const TimeBase& base) {
  if (auto allowed = check_size_limit(); !allowed) return allowed;
  // The header goes before the body.
  const auto writes = format::plan(format::Empty{}, base, format::encode({}));
  return make_file(directory, name, writes[1].bytes + writes[0].bytes, format::file_size);
}

LockFile::Opened LockFile::try_open(const Directory& directory, const std::string& name) {
  for (int i = 0; i < max_reopenings; ++i) {
    // No O_CREAT: with fs.protected_regular, it prevents opening another user's file in a sticky
    // directory.
    UniqueFd fd(
        ::openat(directory.fd.get(), name.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!fd && errno == ENOENT) return Missing{};
    if (!fd) return fault_of_errno("cannot open " + path_of(directory, name), errno).value();
    if (auto locked = lock(std::move(fd), directory, name)) return std::move(*locked);
  }
  return Busy{};
}

std::optional<LockFile::Opened> LockFile::lock(UniqueFd fd, const Directory& directory,
                                               const std::string& name) {
  struct stat opened {};
  if (kernel::fstat(fd.get(), opened) != 0)
    return fault_of_errno("cannot look at the lock file", errno).value();
  if (!S_ISREG(opened.st_mode))
    return Fault{FaultKind::misconfigured, path_of(directory, name) + " is not a regular file"};
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return Busy{};
    return fault_of_errno("cannot lock the lock file", errno).value();
  }
  struct stat named {};
  if (kernel::fstatat(directory.fd.get(), name.c_str(), named, AT_SYMLINK_NOFOLLOW) != 0 ||
      !is_same_file(opened, named))
    return std::nullopt;
  if (named.st_nlink != 1) {
    remove_temporary_names(directory, named);
    return Busy{};
  }
  return LockFile(std::move(fd), name, path_of(directory, name));
}

bool LockFile::is_named(const Directory& directory) const {
  struct stat opened {};
  struct stat named {};
  return kernel::fstat(fd_.get(), opened) == 0 &&
         kernel::fstatat(directory.fd.get(), name_.c_str(), named, AT_SYMLINK_NOFOLLOW) == 0 &&
         is_same_file(opened, named);
}

Result<format::Found, Fault> LockFile::load(const KernelTime& time) const {
  struct stat status {};
  if (kernel::fstat(fd_.get(), status) != 0)
    return fault_of_errno("cannot look at the lock file", errno);
  const auto read_at = [this](std::size_t offset, std::span<char> bytes) {
    return read_all_at(fd_.get(), offset, bytes);
  };
  const auto was_rebooted = [&](const TimeBase& base) { return time.was_rebooted_since(base); };
  format::Found found =
      format::read(read_at, static_cast<std::size_t>(status.st_size), was_rebooted);
  if (std::holds_alternative<format::Damaged>(found)) {
    return unexpected(
        Fault{FaultKind::garbage,
              "its file is damaged: " + path_ + "; when nothing runs under that lock, remove it"});
  }
  const auto* stored = std::get_if<format::Stored>(&found);
  if (stored != nullptr && !time.is_ours(stored->base))
    return unexpected(other_time_namespace(path_));
  return found;
}

Result<void, Fault> LockFile::store(const format::Found& found, const TimeBase& base,
                                    const std::string& body) const {
  // Data from an earlier boot must not remain beside the first copy of this boot.
  if (std::holds_alternative<format::Empty>(found) && ::ftruncate(fd_.get(), 0) != 0)
    return fault_of_errno("cannot write the lock file", errno);
  if (auto room = make_room(body.size()); !room) return room;
  for (const format::Write& write : format::plan(found, base, body)) {
    if (!write_all_at(fd_.get(), write.bytes, write.offset))
      return fault_of_errno("cannot write the lock file", errno);
  }
  return {};
}

/// Allocates disk space for both slots, so that a release still fits when the file system is full.
Result<void, Fault> LockFile::make_room(std::size_t body_size) const {
  if (auto allowed = check_size_limit(); !allowed) return allowed;
  struct stat status {};
  if (kernel::fstat(fd_.get(), status) != 0)
    return fault_of_errno("cannot look at the lock file", errno);
  if (status.st_size == 0 && ::ftruncate(fd_.get(), format::file_size) != 0)
    return fault_of_errno("cannot write the lock file", errno);
  for (const std::size_t offset : {std::size_t{0}, format::slot_size}) {
    const auto size = static_cast<off_t>(format::header_size + body_size);
    int failed = 0;
    do {
      failed = ::fallocate(fd_.get(), FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset), size) != 0
                   ? errno
                   : 0;
    } while (failed == EINTR);
    // If the file system does not support this, it may be too full for a release. Then the lease
    // expires.
    if (failed != 0 && failed != EOPNOTSUPP && failed != ENOSYS)
      return fault_of_errno("cannot write the lock file", failed);
  }
  return {};
}

bool is_lock_file(std::string_view name) {
  return name.size() == file_name_size && name.find_first_not_of(hex_digits) == std::string::npos;
}

std::vector<std::string> lock_files_in(const Directory& directory) {
  std::vector<std::string> names = names_in(directory);
  std::erase_if(names, [](const std::string& name) { return !is_lock_file(name); });
  return names;
}

}  // namespace redlock::local
