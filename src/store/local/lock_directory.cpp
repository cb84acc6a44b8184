#include "store/local/lock_directory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "support/kernel_calls.hpp"
#include "support/random.hpp"
#include "support/text.hpp"

namespace redlock::local {
namespace {

// --- Its name ---

constexpr std::string_view scheme = "local:";

std::string without_needless_slashes(std::string_view path) {
  std::string clean;
  for (const char c : path) {
    if (c != '/' || !clean.ends_with('/')) clean += c;
  }
  if (clean.size() > 1 && clean.ends_with('/')) clean.pop_back();
  return clean;
}

// --- What makes one unusable ---

constexpr int open_flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

/// statfs(2)'s f_type of file systems whose locks do not depend on this host's kernel alone; most
/// are not in every <linux/magic.h>.
constexpr std::array<std::uint32_t, 19> shared_file_systems{
    0x00006969,  // NFS
    0x0000517b,  // SMB
    0xff534d42,  // CIFS
    0xfe534d42,  // SMB 2
    0x65735546,  // FUSE
    0x01021997,  // 9p
    0x00c36400,  // Ceph
    0x5346414f,  // AFS
    0x6b414653,  // kAFS
    0x73757245,  // Coda
    0x01161970,  // GFS2
    0x7461636f,  // OCFS2
    0x0bd00bd0,  // Lustre
    0x47504653,  // GPFS
    0x19830326,  // BeeGFS
    0xaad7aaea,  // PanFS
    0x0000564c,  // NCP
    0x786f4256,  // VirtualBox's shared folders
    0xbacbacbc,  // VMware's shared folders
};

/// Whether the errno may be temporary.
bool is_transient(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == EINTR;
}

unexpected<Fault> refused(const Location& location, const std::string& why) {
  std::string text = escape_for_terminal(location.directory) + " " + why;
  if (location.is_own) text += "; name a directory with local:/DIRECTORY";
  return unexpected(Fault{FaultKind::misconfigured, std::move(text)});
}

unexpected<Fault> refused_errno(const Location& location, int error) {
  if (is_transient(error))
    return fault_of_errno("cannot open " + escape_for_terminal(location.directory), error);
  if (error == ELOOP || error == ENOTDIR)
    return refused(location, "is not a directory, or is a symbolic link");
  std::string advice;
  if (error == ENOENT && !location.is_own)
    advice = "; make it, for all users to share: mkdir -m 1777 " + shell_word(location.directory);
  return refused(location, "cannot be used: " + errno_text(error) + advice);
}

bool any_user_may_remove_files(const struct stat& status) {
  return (status.st_mode & S_IWOTH) != 0 && (status.st_mode & S_ISVTX) == 0;
}

/// On RHEL, Fedora, Arch and openSUSE, /run/lock is root's alone.
std::string advice_for(int error, const Location& location) {
  if (error != EACCES) return {};
  const std::string user = std::to_string(kernel::effective_user());
  return "; root can have it made at boot, by a file in /etc/tmpfiles.d with the line `d " +
         location.directory + " 0700 " + user + " " + std::to_string(::getegid()) + "`";
}

Result<UniqueFd, Fault> open_own(const Location& location) {
  const std::size_t slash = location.directory.rfind('/');
  const std::string parent = location.directory.substr(0, slash);
  const std::string name = location.directory.substr(slash + 1);
  const UniqueFd above(::open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct stat status {};
  if (!above || kernel::fstat(above.get(), status) != 0)
    return refused(location, "cannot be made: " + parent + ": " + errno_text(errno));
  if (any_user_may_remove_files(status) ||
      (status.st_uid != 0 && status.st_uid != kernel::effective_user())) {
    return refused(location, "is not safe: others may take it away from " + parent);
  }
  UniqueFd fd(::openat(above.get(), name.c_str(), open_flags));
  if (fd || errno != ENOENT) return fd;
  // Set the mode again, as the umask may have removed bits of it.
  const bool made = ::mkdirat(above.get(), name.c_str(), S_IRWXU) == 0;
  if (made ? ::fchmodat(above.get(), name.c_str(), S_IRWXU, 0) != 0 : errno != EEXIST)
    return refused(location, "cannot be made: " + errno_text(errno) + advice_for(errno, location));
  fd.reset(::openat(above.get(), name.c_str(), open_flags));
  return fd;
}

// --- New files ---

constexpr std::string_view temporary_prefix = ".redlock-cli-new-";
constexpr std::string_view decimal_digits = "0123456789";

/// Whether several users may make locks there.
bool is_shared(const Directory& directory) {
  return (directory.file_mode & (S_IRGRP | S_IROTH)) != 0;
}

/// Removes a name when it is destroyed.
class TemporaryName {
 public:
  explicit TemporaryName(int directory) : directory_(directory), name_(temporary_name()) {}
  ~TemporaryName() { ::unlinkat(directory_, name_.c_str(), 0); }
  TemporaryName(const TemporaryName&) = delete;
  TemporaryName& operator=(const TemporaryName&) = delete;
  [[nodiscard]] const char* get() const { return name_.c_str(); }

 private:
  int directory_;
  std::string name_;
};

/// Renames a file without replacing another one.
bool give_name(int directory, const char* temporary, const char* name) {
  if (rename_without_replacing(directory, temporary, directory, name) == 0) return true;
  // Some file systems do not support RENAME_NOREPLACE (ZFS before 2.2), and the seccomp filter of a
  // container may refuse a call that it does not know. Then link the file, which has two names for
  // a moment.
  const bool is_refused = errno == EINVAL || errno == ENOSYS || errno == EPERM;
  return is_refused && ::linkat(directory, temporary, directory, name, 0) == 0;
}

}  // namespace

Result<Location, std::string> parse_location(std::string_view url) {
  const std::string_view path = url.substr(scheme.size());
  // It depends on the effective user, and on no environment variable, as cron and sudo remove them.
  const std::string own = "/run/lock/redlock-cli-" + std::to_string(kernel::effective_user());
  if (path.empty()) return Location{own, true};
  if (!path.starts_with('/'))
    return unexpected(std::string("it needs an absolute path: local:/directory"));
  if (std::ranges::any_of(path, is_control))
    return unexpected(std::string("its path holds control characters"));
  const std::string directory = without_needless_slashes(path);
  return Location{directory, directory == own};
}

Result<Directory, Fault> open_directory(const Location& location) {
  errno = 0;
  auto fd = location.is_own ? open_own(location)
                            : UniqueFd(::open(location.directory.c_str(), open_flags));
  if (!fd) return unexpected(fd.error());
  if (!*fd) return refused_errno(location, errno);

  struct stat status {};
  struct statfs system {};
  if (kernel::fstat(fd->get(), status) != 0 || ::fstatfs(fd->get(), &system) != 0)
    return refused_errno(location, errno);
  if (location.is_own &&
      (status.st_uid != kernel::effective_user() || (status.st_mode & (S_IRWXG | S_IRWXO)) != 0)) {
    return refused(location, "must be owned by you, mode 0700");
  }
  if (any_user_may_remove_files(status))
    return refused(location, "is not safe: any user can remove files there (chmod +t)");
  if ((system.f_flags & ST_RDONLY) != 0)
    return refused(location, "cannot be used: " + errno_text(EROFS));
  if (reaches_beyond_this_host(static_cast<std::uint32_t>(system.f_type))) {
    return refused(location, "is on a network or FUSE file system; locks need a local one");
  }

  mode_t mode = S_IRUSR | S_IWUSR;
  if ((status.st_mode & S_IWGRP) != 0) mode |= S_IRGRP | S_IWGRP;
  if ((status.st_mode & S_IWOTH) != 0) mode |= S_IROTH | S_IWOTH;
  return Directory{std::move(*fd), mode, status.st_uid, status.st_gid,
                   escape_for_terminal(location.directory)};
}

std::vector<std::string> names_in(const Directory& directory) {
  std::vector<std::string> names;
  // A separate descriptor, as reading a directory moves its position.
  UniqueFd copy(::openat(directory.fd.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DIR* entries = copy ? ::fdopendir(copy.get()) : nullptr;
  if (entries == nullptr) return names;
  (void)copy.release();
  while (const dirent* entry = ::readdir(entries)) names.emplace_back(entry->d_name);
  ::closedir(entries);
  return names;
}

bool reaches_beyond_this_host(std::uint32_t file_system) {
  return std::find(shared_file_systems.begin(), shared_file_systems.end(), file_system) !=
         shared_file_systems.end();
}

Result<void, Fault> make_file(const Directory& directory, const std::string& name,
                              std::string_view bytes, std::size_t size) {
  const std::string what = "cannot make a file in " + directory.path;
  const TemporaryName temporary(directory.fd.get());
  const UniqueFd fd(::openat(directory.fd.get(), temporary.get(),
                             O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                             S_IRUSR | S_IWUSR));
  if (!fd) return fault_of_errno(what, errno);
  if (!set_rights(directory, fd.get(), S_IFREG)) return fault_of_naming(what, errno);
  // So few bytes are written completely or not at all.
  if ((!bytes.empty() &&
       ::write(fd.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) ||
      (size > bytes.size() && ::ftruncate(fd.get(), static_cast<off_t>(size)) != 0))
    return fault_of_errno(what, errno);
  if (!give_name(directory.fd.get(), temporary.get(), name.c_str()) && errno != EEXIST)
    return fault_of_naming(what, errno);
  return {};
}

void remove_temporary_names(const Directory& directory, const struct stat& file) {
  for (const std::string& name : names_in(directory)) {
    struct stat named {};
    if (!is_temporary(name) ||
        kernel::fstatat(directory.fd.get(), name.c_str(), named, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    if (is_same_file(named, file)) ::unlinkat(directory.fd.get(), name.c_str(), 0);
  }
}

bool is_of_locks(const Directory& directory, const struct stat& file) {
  return is_shared(directory) || file.st_uid == directory.owner || file.st_uid == 0 ||
         file.st_uid == kernel::effective_user();
}

std::string temporary_name() {
  return std::string(temporary_prefix) + std::to_string(random_bits());
}

bool is_temporary(std::string_view name) {
  return name.starts_with(temporary_prefix) && name.size() > temporary_prefix.size() &&
         name.find_first_not_of(decimal_digits, temporary_prefix.size()) == std::string_view::npos;
}

void remove_if_old(const Directory& directory, const std::string& name) {
  // Completing a file takes microseconds.
  constexpr time_t seconds = 60;
  struct stat named {};
  if (kernel::fstatat(directory.fd.get(), name.c_str(), named, AT_SYMLINK_NOFOLLOW) == 0 &&
      (S_ISREG(named.st_mode) || S_ISFIFO(named.st_mode)) && is_of_locks(directory, named) &&
      named.st_mtim.tv_sec < kernel::clock(CLOCK_REALTIME).tv_sec - seconds)
    ::unlinkat(directory.fd.get(), name.c_str(), 0);
}

bool set_rights(const Directory& directory, int fd, mode_t type) {
  struct stat made {};
  if (kernel::fstat(fd, made) != 0) return false;
  if ((made.st_mode & S_IFMT) != type || made.st_uid != kernel::effective_user() ||
      made.st_nlink != 1) {
    errno = ENOENT;
    return false;
  }
  constexpr auto unchanged = static_cast<uid_t>(-1);
  // A user outside the group may not set it; then the directory's setgid bit may have done so.
  if ((directory.file_mode & S_IRGRP) != 0 && kernel::fchown(fd, unchanged, directory.group) != 0 &&
      errno != EPERM)
    return false;
  // EINVAL: a user that does not exist in our user namespace.
  if (!is_shared(directory) && directory.owner != made.st_uid &&
      kernel::fchown(fd, directory.owner, unchanged) != 0 && errno != EPERM && errno != EINVAL)
    return false;
  return ::fchmod(fd, directory.file_mode) == 0;
}

unexpected<Fault> fault_of_errno(const std::string& what, int error) {
  FaultKind kind = FaultKind::misconfigured;
  if (error == ENOSPC || error == EDQUOT || is_transient(error)) kind = FaultKind::unavailable;
  if (error == EACCES) kind = FaultKind::denied;
  return unexpected(Fault{kind, what + ": " + errno_text(error)});
}

unexpected<Fault> fault_of_naming(const std::string& what, int error) {
  if (error != ENOENT) return fault_of_errno(what, error);
  return unexpected(
      Fault{FaultKind::silent, what + ": another process removed or replaced it just now"});
}

}  // namespace redlock::local
