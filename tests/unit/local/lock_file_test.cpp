#include "store/local/lock_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <filesystem>

#include "../store/drive.hpp"
#include "shifted_clock.hpp"

namespace redlock::local {
namespace {

class LockFileTest : public ::testing::Test {
 protected:
  LockFileTest() { open_with_mode(0700); }

  void open_with_mode(mode_t mode) {
    EXPECT_EQ(::chmod(root_.file("").c_str(), mode), 0);
    auto opened = open_directory({root_.file("."), false});
    ASSERT_TRUE(opened.has_value()) << opened.error().text;
    directory_ = std::move(*opened);
  }

  LockFile::Opened try_open() const { return LockFile::try_open(directory_, "lock"); }
  void create() const {
    const auto created = make_file(directory_, "lock", "");
    ASSERT_TRUE(created.has_value()) << created.error().text;
  }
  Result<void, Fault> write(const LockFile& file, const std::string& value) const {
    const auto found = file.load(time_);
    if (!found) return unexpected(found.error());
    Keyspace::Entries entries;
    entries["deploy"] = Entry{value, std::nullopt};
    return file.store(*found, time_.base({}), format::encode(entries));
  }
  [[nodiscard]] std::string read(const LockFile& file) const {
    const auto found = file.load(time_);
    if (!found) return found.error().text;
    if (std::holds_alternative<format::Empty>(*found)) return "nothing";
    return std::get<std::string>(std::get<format::Stored>(*found).entries.at("deploy").value);
  }
  void expect_fault(const std::string& why) const {
    const auto opened = try_open();
    ASSERT_TRUE(std::holds_alternative<Fault>(opened)) << opened.index();
    EXPECT_NE(std::get<Fault>(opened).text.find(why), std::string::npos)
        << std::get<Fault>(opened).text;
  }
  [[nodiscard]] std::string path() const { return root_.file("lock"); }

  testing::Directory root_;
  Directory directory_;
  testing::Drive drive_;
  testing::ShiftedClock clock_{drive_.clock()};
  KernelTime time_ = KernelTime::find(clock_).value();
};

TEST_F(LockFileTest, AFileThatIsNotThereIsMissing) {
  EXPECT_TRUE(std::holds_alternative<LockFile::Missing>(try_open()));
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(LockFileTest, WhatIsStoredIsLoadedByTheNext) {
  create();
  for (const std::string value : {"one", "two", "three"}) {
    {
      const auto opened = try_open();
      ASSERT_TRUE(std::holds_alternative<LockFile>(opened));
      ASSERT_TRUE(write(std::get<LockFile>(opened), value).has_value());
    }
    EXPECT_EQ(read(std::get<LockFile>(try_open())), value);
  }
}

TEST_F(LockFileTest, TheFileTakesLittleRoom) {
  create();
  ASSERT_TRUE(write(std::get<LockFile>(try_open()), std::string(1000, 'x')).has_value());
  struct stat status {};
  ASSERT_EQ(::stat(path().c_str(), &status), 0);
  EXPECT_LE(status.st_blocks * 512, 16 * 1024);
}

TEST_F(LockFileTest, ANewFileHasNoKeysAndShowsWhatItIs) {
  ASSERT_TRUE(LockFile::make(directory_, "lock", time_.base({})).has_value());
  const auto opened = try_open();
  const auto found = std::get<LockFile>(opened).load(time_);
  ASSERT_TRUE(found.has_value()) << found.error().text;
  EXPECT_TRUE(std::get<format::Stored>(*found).entries.empty());
  ASSERT_TRUE(write(std::get<LockFile>(opened), "x").has_value());
  EXPECT_EQ(read(std::get<LockFile>(opened)), "x");
}

TEST_F(LockFileTest, OneAtATimeHasIt) {
  create();
  {
    const auto first = try_open();
    ASSERT_TRUE(std::holds_alternative<LockFile>(first));
    EXPECT_TRUE(std::holds_alternative<LockFile::Busy>(try_open()));
  }
  EXPECT_TRUE(std::holds_alternative<LockFile>(try_open()));
}

TEST_F(LockFileTest, CreatingIsNoHarmWhenAnotherWasFirst) {
  create();
  ASSERT_TRUE(write(std::get<LockFile>(try_open()), "theirs").has_value());
  create();
  EXPECT_EQ(read(std::get<LockFile>(try_open())), "theirs");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(root_.file("")), {}), 1)
      << "no temporary name is left";
}

TEST_F(LockFileTest, AFileThatLostItsNameIsNotTheLock) {
  create();
  UniqueFd removed(::open(path().c_str(), O_RDWR));
  UniqueFd replaced(::open(path().c_str(), O_RDWR));
  ASSERT_EQ(::unlink(path().c_str()), 0);
  EXPECT_FALSE(LockFile::lock(std::move(removed), directory_, "lock").has_value());
  create();
  EXPECT_FALSE(LockFile::lock(std::move(replaced), directory_, "lock").has_value());
  EXPECT_TRUE(std::holds_alternative<LockFile>(try_open()));
}

TEST_F(LockFileTest, AFileThatIsRemovedWhileItIsLockedIsNoticed) {
  create();
  const auto opened = try_open();
  const auto& file = std::get<LockFile>(opened);
  EXPECT_TRUE(file.is_named(directory_));
  ASSERT_EQ(::unlink(path().c_str()), 0);
  EXPECT_FALSE(file.is_named(directory_));
  create();
  EXPECT_FALSE(file.is_named(directory_)) << "another one has its name";
}

TEST_F(LockFileTest, AMakerThatDiedBeforeItRemovedTheTemporaryNameWedgesNothing) {
  create();
  ASSERT_EQ(::link(path().c_str(), root_.file(".redlock-cli-new-1").c_str()), 0);
  EXPECT_TRUE(std::holds_alternative<LockFile::Busy>(try_open()));
  EXPECT_TRUE(std::holds_alternative<LockFile>(try_open()));
}

TEST_F(LockFileTest, WhatIsNoPlainFileOfOneNameIsRefused) {
  ASSERT_EQ(::symlink("/etc/passwd", path().c_str()), 0);
  expect_fault("too many levels of symbolic links");
  ::unlink(path().c_str());
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  expect_fault("not a regular file");
  ::unlink(path().c_str());
  create();
  ASSERT_EQ(::link(path().c_str(), root_.file("other").c_str()), 0);
  EXPECT_TRUE(std::holds_alternative<LockFile::Busy>(try_open()));
}

TEST_F(LockFileTest, FilesAreMadeForThoseWhoMayWriteToTheDirectory) {
  const mode_t before = ::umask(077);
  for (const auto& [directory_mode, file_mode] :
       std::vector<std::pair<mode_t, mode_t>>{{0700, 0600}, {02770, 0660}, {01777, 0666}}) {
    open_with_mode(directory_mode);
    create();
    struct stat status {};
    ASSERT_EQ(::stat(path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, file_mode) << std::oct << directory_mode;
    ::unlink(path().c_str());
  }
  ::umask(before);
}

TEST_F(LockFileTest, AFileOfAnotherTimeNamespaceIsRefused) {
  create();
  const auto opened = try_open();
  const auto& file = std::get<LockFile>(opened);
  TimeBase base = time_.base({});
  ++base.time_namespace;
  base.written += std::chrono::hours(1);
  ASSERT_TRUE(file.store(format::Empty{}, base, format::encode({})).has_value());
  EXPECT_NE(read(file).find("another time namespace"), std::string::npos) << read(file);
  EXPECT_NE(read(file).find(root_.file(".") + "/lock"), std::string::npos) << read(file);
}

TEST_F(LockFileTest, ADamagedFileIsNamed) {
  create();
  ASSERT_TRUE(write(std::get<LockFile>(try_open()), "x").has_value());
  ASSERT_EQ(::truncate(path().c_str(), 4000), 0);
  EXPECT_NE(read(std::get<LockFile>(try_open()))
                .find("its file is damaged: " + root_.file(".") + "/lock; when"),
            std::string::npos);
}

/// Beside the first copy of this boot nothing else may lie, or a damaged copy could not be told
/// from an old one.
TEST_F(LockFileTest, WhatAnotherBootLeftIsGoneWithTheFirstCopy) {
  create();
  clock_.boot_shift = std::chrono::hours(1);
  for (const std::string value : {"one", "two"})
    ASSERT_TRUE(write(std::get<LockFile>(try_open()), value).has_value());
  clock_.boot_shift = {};
  ASSERT_TRUE(write(std::get<LockFile>(try_open()), "ours").has_value());
  const UniqueFd fd(::open(path().c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::pwrite(fd.get(), "damaged", 7, 100), 7);
  EXPECT_NE(read(std::get<LockFile>(try_open())).find("damaged"), std::string::npos);
}

TEST_F(LockFileTest, ALimitForTheSizeOfFilesEndsNoProcess) {
  create();
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{4096, 4096};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto written = write(std::get<LockFile>(try_open()), "x");
    ::_exit(!written && written.error().text.find("ulimit -f") != std::string::npos ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace redlock::local
