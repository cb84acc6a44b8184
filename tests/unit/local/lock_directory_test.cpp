#include "store/local/lock_directory.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../store/drive.hpp"

namespace redlock::local {
namespace {

TEST(PlaceTest, LocalAloneIsThisUsersOwn) {
  const auto place = parse_location("local:");
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->directory, "/run/lock/redlock-cli-" + std::to_string(::geteuid()));
  EXPECT_TRUE(place->is_own);
}

TEST(PlaceTest, ADirectoryHasOneName) {
  for (const std::string_view url :
       {"local:/srv/locks", "local:/srv/locks/", "local:///srv//locks//"}) {
    const auto place = parse_location(url);
    ASSERT_TRUE(place.has_value()) << url;
    EXPECT_EQ(place->name(), "local:/srv/locks");
    EXPECT_FALSE(place->is_own);
  }
  EXPECT_EQ(parse_location("local:/")->directory, "/");
}

TEST(PlaceTest, TheOwnPlaceIsOwnUnderItsName) {
  EXPECT_TRUE(parse_location(parse_location("local:")->name())->is_own);
}

TEST(PlaceTest, OtherTextIsRefused) {
  EXPECT_FALSE(parse_location("local:relative").has_value());
  EXPECT_FALSE(parse_location("local:/a\nb").has_value());
}

class DirectoryTest : public ::testing::Test {
 protected:
  [[nodiscard]] Location own() const { return {root_.file("own"), true}; }
  [[nodiscard]] Location shared() const { return {root_.file("shared"), false}; }

  static void make(const Location& place, mode_t mode) {
    ::mkdir(place.directory.c_str(), mode);
    EXPECT_EQ(::chmod(place.directory.c_str(), mode), 0);
  }
  static mode_t mode_of(const std::string& path) {
    struct stat status {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0);
    return status.st_mode & 07777;
  }
  static void expect_refused(const Location& place, const std::string& why) {
    const auto directory = open_directory(place);
    ASSERT_FALSE(directory.has_value()) << why;
    EXPECT_EQ(directory.error().kind, FaultKind::misconfigured);
    EXPECT_NE(directory.error().text.find(why), std::string::npos) << directory.error().text;
    EXPECT_EQ(directory.error().text.find("local:/DIRECTORY") != std::string::npos, place.is_own);
  }

  testing::Directory root_;
};

TEST_F(DirectoryTest, AUsersOwnIsMadeForThemAlone) {
  const mode_t before = ::umask(0777);
  const auto directory = open_directory(own());
  ::umask(before);
  ASSERT_TRUE(directory.has_value()) << directory.error().text;
  EXPECT_EQ(mode_of(own().directory), 0700);
  EXPECT_EQ(directory->file_mode, 0600);
  EXPECT_TRUE(open_directory(own()).has_value()) << "and found again";
}

TEST_F(DirectoryTest, AUsersOwnIsRefusedWhenOthersCanReadIt) {
  for (const mode_t mode : std::vector<mode_t>{0750, 0705, 0711, 01777}) {
    make(own(), mode);
    expect_refused(own(), "must be owned by you");
  }
}

TEST_F(DirectoryTest, AUsersOwnIsRefusedWhereOthersCouldReplaceIt) {
  EXPECT_EQ(::chmod(root_.file("").c_str(), 0777), 0);
  expect_refused(own(), "is not safe");
  EXPECT_NE(::access(own().directory.c_str(), F_OK), 0) << "nothing is made there";
  EXPECT_EQ(::chmod(root_.file("").c_str(), 01777), 0);
  EXPECT_TRUE(open_directory(own()).has_value());
}

TEST_F(DirectoryTest, AUsersOwnIsRefusedInADirectoryOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a directory away";
  constexpr uid_t another_user = 65534;
  ASSERT_EQ(::chown(root_.file("").c_str(), another_user, static_cast<gid_t>(-1)), 0);
  expect_refused(own(), "is not safe");
}

TEST_F(DirectoryTest, ASymbolicLinkIsRefused) {
  make(shared(), 0700);
  EXPECT_EQ(::symlink(shared().directory.c_str(), own().directory.c_str()), 0);
  expect_refused(own(), "symbolic link");
  expect_refused({own().directory, false}, "symbolic link");
}

TEST_F(DirectoryTest, ASharedOneIsNeverMade) {
  expect_refused(shared(), "no such file or directory; make it");
  EXPECT_NE(::access(shared().directory.c_str(), F_OK), 0);
}

TEST_F(DirectoryTest, FilesAreForThoseWhoMayWriteToTheDirectory) {
  const std::vector<std::pair<mode_t, mode_t>> modes{
      {0700, 0600}, {0755, 0600}, {02770, 0660}, {02775, 0660}, {01777, 0666}};
  for (const auto& [mode, file_mode] : modes) {
    make(shared(), mode);
    const auto directory = open_directory(shared());
    ASSERT_TRUE(directory.has_value()) << directory.error().text;
    EXPECT_EQ(directory->file_mode, file_mode) << std::oct << mode;
  }
}

TEST_F(DirectoryTest, WhereAnyUserMayRemoveFilesIsRefused) {
  make(shared(), 0777);
  expect_refused(shared(), "any user can remove files there");
}

TEST(FileSystemTest, OnlyThisHostsOwnWillDo) {
  for (const std::uint32_t type : std::vector<std::uint32_t>{
           NFS_SUPER_MAGIC, SMB_SUPER_MAGIC, V9FS_MAGIC, AFS_SUPER_MAGIC, CODA_SUPER_MAGIC}) {
    EXPECT_TRUE(reaches_beyond_this_host(type)) << std::hex << type;
  }
  for (const std::uint32_t type : {0xff534d42U, 0xfe534d42U, 0x65735546U})
    EXPECT_TRUE(reaches_beyond_this_host(type)) << std::hex << type;
  for (const std::uint32_t type : std::vector<std::uint32_t>{
           TMPFS_MAGIC, EXT4_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC, XFS_SUPER_MAGIC}) {
    EXPECT_FALSE(reaches_beyond_this_host(type)) << std::hex << type;
  }
}

/// Others who may write to the directory may have put it where the new file was.
TEST_F(DirectoryTest, RightsAreGivenToNothingButANewFile) {
  make(shared(), 02770);
  const Directory directory = std::move(open_directory(shared()).value());
  const std::string path = shared().directory + "/file";
  const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  EXPECT_FALSE(set_rights(directory, fd.get(), S_IFIFO)) << "of another type";
  ASSERT_EQ(::link(path.c_str(), (path + "-2").c_str()), 0);
  EXPECT_FALSE(set_rights(directory, fd.get(), S_IFREG)) << "of two names";
  ASSERT_EQ(::unlink((path + "-2").c_str()), 0);
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(path.c_str(), 65534, static_cast<gid_t>(-1)), 0);
    EXPECT_FALSE(set_rights(directory, fd.get(), S_IFREG)) << "of another user";
    ASSERT_EQ(::chown(path.c_str(), 0, static_cast<gid_t>(-1)), 0);
  }
  EXPECT_EQ(mode_of(path), 0600U);
  EXPECT_TRUE(set_rights(directory, fd.get(), S_IFREG));
  EXPECT_EQ(mode_of(path), 0660U);
}

TEST_F(DirectoryTest, WhatRootMakesInAUsersDirectoryIsTheUsers) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a directory away";
  constexpr uid_t user = 65534;
  const std::vector<std::pair<mode_t, uid_t>> owners{
      {0700, user}, {0755, user}, {02770, 0}, {01777, 0}};
  for (const auto& [mode, owner] : owners) {
    make(shared(), mode);
    ASSERT_EQ(::chown(shared().directory.c_str(), user, static_cast<gid_t>(-1)), 0);
    ASSERT_EQ(::chmod(shared().directory.c_str(), mode), 0);
    const Directory directory = std::move(open_directory(shared()).value());
    ASSERT_TRUE(make_file(directory, "file", "x").has_value());
    const std::string path = shared().directory + "/file";
    struct stat status {};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_uid, owner) << std::oct << mode;
    ASSERT_EQ(::unlink(path.c_str()), 0);
  }
}

}  // namespace
}  // namespace redlock::local
