#include "store/local/new_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "support/random.hpp"
#include "support/text.hpp"

namespace redlock::local {
namespace {

/// Removes a name when it goes.
class TemporaryName {
 public:
  explicit TemporaryName(int directory) : directory_(directory), name_(".new-" + std::to_string(random_bits())) {}
  ~TemporaryName() { ::unlinkat(directory_, name_.c_str(), 0); }
  TemporaryName(const TemporaryName&) = delete;
  TemporaryName& operator=(const TemporaryName&) = delete;
  [[nodiscard]] const char* get() const { return name_.c_str(); }

 private:
  int directory_;
  std::string name_;
};

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
  if (::linkat(directory.fd.get(), temporary.get(), directory.fd.get(), name.c_str(), 0) != 0 && errno != EEXIST) {
    return fault_of_errno("cannot make a file", errno);
  }
  return {};
}

unexpected<Fault> fault_of_errno(const std::string& what, int error) {
  FaultKind kind = FaultKind::misconfigured;
  if (error == ENOSPC || error == EDQUOT) kind = FaultKind::unavailable;
  if (error == EACCES) kind = FaultKind::denied;
  return unexpected(Fault{kind, what + ": " + errno_text(error)});
}

}  // namespace redlock::local
