#include "store/password_file.hpp"

#include <sys/stat.h>

#include <fstream>
#include <thread>

#include "drive.hpp"

namespace redlock {
namespace {

class PasswordFileTest : public ::testing::Test {
 protected:
  void write(std::string_view text) { std::ofstream(path_, std::ios::binary) << text; }

  testing::Directory directory_;
  std::string path_ = directory_.file("password");
};

TEST_F(PasswordFileTest, HasThePasswordInItsFirstLine) {
  EXPECT_EQ(password_in("secret\nmore"), "secret");
  EXPECT_EQ(password_in("\xef\xbb\xbfsecret\r\n"), "secret");
  EXPECT_EQ(password_in(" a b\t"), " a b\t");
  EXPECT_EQ(password_in("\n"), "");
}

TEST_F(PasswordFileTest, IsReadAgain) {
  write("old\n");
  const auto file = PasswordFile::open(path_).value();
  EXPECT_EQ(file->password(), "old");
  write("new\n");
  EXPECT_EQ(file->password(), "new");
}

TEST_F(PasswordFileTest, KeepsTheLastPasswordWhileThereIsNone) {
  write("old\n");
  const auto file = PasswordFile::open(path_).value();
  for (const char* empty : {"", "\n", "\r\nrest\n"}) {
    write(empty);
    EXPECT_EQ(file->password(), "old");
  }
  std::filesystem::remove(path_);
  EXPECT_EQ(file->password(), "old");
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(file->password(), "old");
}

TEST_F(PasswordFileTest, ReadsAPipeOnce) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  std::thread writer([this] { write("secret\n"); });
  const auto file = PasswordFile::open(path_).value();
  writer.join();
  EXPECT_EQ(file->password(), "secret");
  EXPECT_EQ(file->password(), "secret");
}

TEST_F(PasswordFileTest, SaysWhatIsWrong) {
  EXPECT_EQ(PasswordFile::open(path_).error(), "no such file or directory");
  write("");
  EXPECT_EQ(PasswordFile::open(path_).error(), "it is empty");
  EXPECT_EQ(PasswordFile::open("/dev/zero").error(), "its first line is too long");
}

}  // namespace
}  // namespace redlock
