#include "store/local/new_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "support/random.hpp"
#include "support/text.hpp"

namespace redlock::local {
namespace {

constexpr std::string_view temporary_prefix = ".new-";

/// Removes a name when it goes.
class TemporaryName {
 public:
  explicit TemporaryName(int directory) : directory_(directory), name_(std::string(temporary_prefix) + std::to_string(random_bits())) {}
  ~TemporaryName() { ::unlinkat(directory_, name_.c_str(), 0); }
  TemporaryName(const TemporaryName&) = delete;
  TemporaryName& operator=(const TemporaryName&) = delete;
  [[nodiscard]] const char* get() const { return name_.c_str(); }

 private:
  int directory_;
  std::string name_;
};

/// Never in the place of another file.
bool give_name(int directory, const char* temporary, const char* name) {
  if (::renameat2(directory, temporary, directory, name, RENAME_NOREPLACE) == 0) return true;
  // Not every file system can (ZFS before 2.2); there it has two names for a moment.
  return errno == EINVAL && ::linkat(directory, temporary, directory, name, 0) == 0;
}

}  // namespace

Result<void, Fault> make_file(const Directory& directory, const std::string& name, std::string_view bytes) {
  const TemporaryName temporary(directory.fd.get());
  const UniqueFd fd(::openat(directory.fd.get(), temporary.get(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!fd) return fault_of_errno("cannot make a file", errno);
  if ((directory.file_mode & S_IRGRP) != 0 && ::fchown(fd.get(), static_cast<uid_t>(-1), directory.group) != 0 && errno != EPERM) {
    return fault_of_errno("cannot give a file its group", errno);
  }
  if (::fchmod(fd.get(), directory.file_mode) != 0) return fault_of_errno("cannot set the mode of a file", errno);
  // A few bytes are written whole or not at all.
  if (!bytes.empty() && ::write(fd.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
    return fault_of_errno("cannot write a file", errno);
  }
  if (!give_name(directory.fd.get(), temporary.get(), name.c_str()) && errno != EEXIST) return fault_of_errno("cannot make a file", errno);
  return {};
}

void remove_temporary_names(const Directory& directory, const struct stat& file) {
  for (const std::string& name : names_in(directory)) {
    struct stat named {};
    if (!name.starts_with(temporary_prefix) || ::fstatat(directory.fd.get(), name.c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (named.st_dev == file.st_dev && named.st_ino == file.st_ino) ::unlinkat(directory.fd.get(), name.c_str(), 0);
  }
}

bool is_passing(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == EINTR;
}

unexpected<Fault> fault_of_errno(const std::string& what, int error) {
  FaultKind kind = FaultKind::misconfigured;
  if (error == ENOSPC || error == EDQUOT || is_passing(error)) kind = FaultKind::unavailable;
  if (error == EACCES) kind = FaultKind::denied;
  return unexpected(Fault{kind, what + ": " + errno_text(error)});
}

}  // namespace redlock::local
