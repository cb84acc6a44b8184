#include "proc/descriptors.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <system_error>
#include <vector>

#include "../in_child.hpp"

namespace redlock::proc {
namespace {

using namespace testing;

/// The target of a descriptor; empty when it is closed.
std::string target(int fd) {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), error).string();
}

/// Opens a file as descriptor `fd`, as a shell does.
void inherit(int fd) {
  UniqueFd zero(::open("/dev/zero", O_RDWR | O_CLOEXEC));
  if (zero.get() == fd) {
    ASSERT_EQ(::fcntl(zero.release(), F_SETFD, 0), 0);
    return;
  }
  ASSERT_EQ(::dup2(zero.get(), fd), fd);
}

TEST(CloseInherited, ClosesInheritedDescriptorsAndKeepsOurs) {
  in_child([] {
    for (const int fd : {0, 1, 2, 9, 200}) inherit(fd);
    const Pipe ours;
    const std::string ours_before = target(ours.read_end.get());
    close_inherited(std::nullopt);
    for (const int fd : {0, 1}) EXPECT_EQ(target(fd), "/dev/null");
    EXPECT_EQ(target(2), "/dev/zero");
    for (const int fd : {9, 200}) EXPECT_EQ(target(fd), "");
    EXPECT_EQ(target(ours.read_end.get()), ours_before);
  });
}

TEST(CloseInherited, KeepsTheRequestedDescriptor) {
  in_child([] {
    for (const int fd : {8, 9}) inherit(fd);
    close_inherited(9);
    EXPECT_EQ(target(8), "");
    EXPECT_EQ(target(9), "/dev/zero");
  });
}

TEST(CloseInherited, KeepsStdoutOnRequest) {
  in_child([] {
    for (const int fd : {0, 1}) inherit(fd);
    close_inherited(1);
    EXPECT_EQ(target(0), "/dev/null");
    EXPECT_EQ(target(1), "/dev/zero");
  });
}

/// Opens a new file as descriptor `fd` and locks it.
void inherit_locked(int fd) {
  std::string name = "/tmp/redlock-locked-XXXXXX";
  UniqueFd file(::mkostemp(name.data(), O_CLOEXEC));
  ASSERT_TRUE(file);
  ::unlink(name.c_str());
  if (file.get() == fd) {
    ASSERT_EQ(::fcntl(file.release(), F_SETFD, 0), 0);
  } else {
    ASSERT_EQ(::dup2(file.get(), fd), fd);
    file.reset();  // closing it after the lock was taken would drop the lock
  }
  struct flock lock {};
  lock.l_type = F_WRLCK;
  ASSERT_EQ(::fcntl(fd, F_SETLK, &lock), 0);
}

/// Whether another process finds the file locked.
bool is_locked(int fd) {
  const pid_t other = forked([fd] {
    struct flock lock {};
    lock.l_type = F_WRLCK;
    ::fcntl(fd, F_GETLK, &lock);
    return lock.l_type == F_UNLCK ? 1 : 0;
  });
  return status_of(other) == 0;
}

TEST(CloseInherited, KeepsRecordLocksTakenBeforeTheExec) {
  in_child([] {
    inherit_locked(9);
    inherit_locked(0);
    ASSERT_EQ(::dup2(9, 10), 10);
    inherit(8);
    const UniqueFd watched(::fcntl(9, F_DUPFD_CLOEXEC, 100));
    const UniqueFd watched_too(::fcntl(0, F_DUPFD_CLOEXEC, 100));
    close_inherited(std::nullopt);
    EXPECT_TRUE(is_locked(watched.get()));
    EXPECT_TRUE(is_locked(watched_too.get()));
    EXPECT_EQ(target(8), "");
  });
}

TEST(CloseInherited, ClosesFilesThatOthersHaveLocked) {
  in_child([] {
    inherit_locked(9);
    const pid_t holder = forked([] {
      close_inherited(std::nullopt);
      return target(9).empty() ? 0 : 1;
    });
    EXPECT_EQ(status_of(holder), 0);
    EXPECT_TRUE(is_locked(9));
  });
}

TEST(CloseInherited, EndsThePipe) {
  in_child([] {
    Pipe pipe;
    ASSERT_EQ(::dup2(pipe.write_end.get(), 1), 1);
    ASSERT_EQ(::dup2(pipe.write_end.get(), 9), 9);
    pipe.write_end.reset();
    close_inherited(std::nullopt);
    EXPECT_EQ(pipe.read(), "");
  });
}

TEST(CloseAllBut, LeavesOne) {
  in_child([] {
    for (const int fd : {0, 1, 2, 9, 200}) inherit(fd);
    const Pipe ours;
    const int read_end = ours.read_end.get();
    const int write_end = ours.write_end.get();
    close_all_but(write_end);
    for (const int fd : {0, 1, 2, 9, 200, read_end}) EXPECT_EQ(::fcntl(fd, F_GETFD), -1) << fd;
    EXPECT_GE(::fcntl(write_end, F_GETFD), 0);
  });
}

TEST(RequireSpareDescriptors, ThrowsIfThereAreTooFew) {
  in_child([] {
    for (int fd = STDERR_FILENO + 1; fd < 64; ++fd) ::close(fd);  // those that our parent left open
    const int next = UniqueFd(::open("/dev/zero", O_RDONLY | O_CLOEXEC)).get();
    const rlimit limit{static_cast<rlim_t>(next) + 5, static_cast<rlim_t>(next) + 5};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
    EXPECT_NO_THROW(require_spare_descriptors(5));
    EXPECT_NO_THROW(require_spare_descriptors(5)) << "it keeps none";
    EXPECT_THROW(require_spare_descriptors(6), std::system_error);
    EXPECT_NO_THROW(require_spare_descriptors(5));
  });
}

TEST(RequireSpareDescriptors, CountsThoseThatAreTaken) {
  in_child([] {
    const rlimit limit{64, 64};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
    std::vector<UniqueFd> taken;
    do {
      taken.emplace_back(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
    } while (taken.back());
    ASSERT_GT(taken.size(), 6U);
    taken.resize(taken.size() - 6);  // the last is invalid
    EXPECT_NO_THROW(require_spare_descriptors(5));
    EXPECT_THROW(require_spare_descriptors(6), std::system_error);
  });
}

TEST(InheritedDescriptors, AreThoseThatWereOpenAtTheCapture) {
  in_child([] {
    for (const int fd : {5, 70}) inherit(fd);
    ::close(6);  // our parent may have left it open
    const auto inherited = InheritedDescriptors::capture();
    inherit(6);
    const Pipe ours;
    inherited.close(std::nullopt);
    for (const int fd : {5, 70}) EXPECT_EQ(target(fd), "");
    EXPECT_EQ(target(6), "/dev/zero");
    EXPECT_GE(::fcntl(ours.read_end.get(), F_GETFD), 0);
  });
}

}  // namespace
}  // namespace redlock::proc
