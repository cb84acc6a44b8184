#include "store/local/directory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>

#include "store/local/new_file.hpp"
#include "support/text.hpp"

namespace redlock::local {
namespace {

constexpr int open_flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

/// statfs(2)'s f_type of file systems whose locks are no matter of this host's kernel alone; most are not in every <linux/magic.h>.
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

unexpected<Fault> refused(const Place& place, const std::string& why) {
  std::string text = escape_for_terminal(place.directory) + " " + why;
  if (place.is_own) text += "; name a directory with local:/DIRECTORY";
  return unexpected(Fault{FaultKind::misconfigured, std::move(text)});
}

unexpected<Fault> refused_errno(const Place& place, int error) {
  if (is_passing(error)) return fault_of_errno("cannot open " + escape_for_terminal(place.directory), error);
  if (error == ELOOP || error == ENOTDIR) return refused(place, "is no directory, or a symbolic link");
  return refused(place, "cannot be used: " + errno_text(error));
}

bool anybody_may_remove(const struct stat& status) {
  return (status.st_mode & S_IWOTH) != 0 && (status.st_mode & S_ISVTX) == 0;
}

Result<UniqueFd, Fault> open_own(const Place& place) {
  const std::size_t slash = place.directory.rfind('/');
  const std::string parent = place.directory.substr(0, slash);
  const std::string name = place.directory.substr(slash + 1);
  const UniqueFd above(::open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct stat status {};
  if (!above || ::fstat(above.get(), &status) != 0) return refused(place, "cannot be made: " + parent + ": " + errno_text(errno));
  if (anybody_may_remove(status) || (status.st_uid != 0 && status.st_uid != ::geteuid())) {
    return refused(place, "is not safe: others may take it away from " + parent);
  }
  UniqueFd fd(::openat(above.get(), name.c_str(), open_flags));
  if (fd || errno != ENOENT) return fd;
  if (::mkdirat(above.get(), name.c_str(), S_IRWXU) == 0) {
    ::fchmodat(above.get(), name.c_str(), S_IRWXU, 0);  // whatever the umask took
  } else if (errno != EEXIST) {
    return refused(place, "cannot be made: " + errno_text(errno));
  }
  fd.reset(::openat(above.get(), name.c_str(), open_flags));
  return fd;
}

}  // namespace

Result<Directory, Fault> open_directory(const Place& place) {
  errno = 0;
  auto fd = place.is_own ? open_own(place) : UniqueFd(::open(place.directory.c_str(), open_flags));
  if (!fd) return unexpected(fd.error());
  if (!*fd) return refused_errno(place, errno);

  struct stat status {};
  struct statfs system {};
  if (::fstat(fd->get(), &status) != 0 || ::fstatfs(fd->get(), &system) != 0) return refused_errno(place, errno);
  if (place.is_own && (status.st_uid != ::geteuid() || (status.st_mode & (S_IRWXG | S_IRWXO)) != 0)) {
    return refused(place, "is not this user's alone (it must be theirs, with mode 0700)");
  }
  if (anybody_may_remove(status)) return refused(place, "is not safe: anybody may remove files there (chmod +t)");
  if ((system.f_flags & ST_RDONLY) != 0) return refused(place, "cannot be used: " + errno_text(EROFS));
  if (reaches_beyond_this_host(static_cast<std::uint32_t>(system.f_type))) {
    return refused(place, "lies on a network file system, or one that a program makes up; locks of this host need its own");
  }

  mode_t mode = S_IRUSR | S_IWUSR;
  if ((status.st_mode & S_IWGRP) != 0) mode |= S_IRGRP | S_IWGRP;
  if ((status.st_mode & S_IWOTH) != 0) mode |= S_IROTH | S_IWOTH;
  return Directory{std::move(*fd), mode, status.st_gid};
}

std::vector<std::string> names_in(const Directory& directory) {
  std::vector<std::string> names;
  UniqueFd copy(::openat(directory.fd.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));  // reading moves a descriptor's position
  DIR* entries = copy ? ::fdopendir(copy.get()) : nullptr;
  if (entries == nullptr) return names;
  (void)copy.release();
  while (const dirent* entry = ::readdir(entries)) names.emplace_back(entry->d_name);
  ::closedir(entries);
  return names;
}

bool reaches_beyond_this_host(std::uint32_t file_system) {
  return std::find(shared_file_systems.begin(), shared_file_systems.end(), file_system) != shared_file_systems.end();
}

}  // namespace redlock::local
