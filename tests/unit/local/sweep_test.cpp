#include "store/local/sweep.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "../store/drive.hpp"
#include "store/local/lock_file.hpp"
#include "store/local/wake.hpp"
#include "support/digest.hpp"

namespace redlock::local {
namespace {

namespace fs = std::filesystem;

/// With no more files than one sweep looks at.
class SweepTest : public ::testing::Test {
 protected:
  SweepTest() : directory_(std::move(open_directory({root_.file("."), false}).value())) {}

  void sweep() const { local::sweep(directory_, time_, {}); }
  std::string make_file(const std::string& name) const {
    std::ofstream{root_.file(name)};
    return root_.file(name);
  }
  static void make_old(const std::string& path) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::minutes(2));
  }
  [[nodiscard]] bool exists(const std::string& name) const {
    return fs::exists(fs::symlink_status(root_.file(name)));
  }

  testing::Directory root_;
  Directory directory_;
  testing::Drive drive_;
  KernelTime time_ = KernelTime::find(drive_.clock()).value();
};

TEST_F(SweepTest, WhatAKilledWaiterLeftGoes) {
  // With its process, its ends of it are gone.
  const std::string name = "wake-" + sha256_hex("killed");
  ASSERT_EQ(::mkfifo(root_.file(name).c_str(), 0600), 0);
  sweep();
  EXPECT_FALSE(exists(name));
}

TEST_F(SweepTest, ALivingWaiterStillReceives) {
  const auto subscription = Subscription::open(directory_, "alive");
  ASSERT_TRUE(subscription.has_value()) << subscription.error().text;
  sweep();
  EXPECT_EQ(publish(directory_, "alive", "x"), 1);
}

TEST_F(SweepTest, WhatWasNeverFinishedGoesOnceItIsOld) {
  make_old(make_file(".redlock-cli-new-1"));
  std::string fifo = root_.file(".redlock-cli-new-2");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  make_old(fifo);
  make_file(".redlock-cli-new-3");
  sweep();
  EXPECT_FALSE(exists(".redlock-cli-new-1"));
  EXPECT_FALSE(exists(".redlock-cli-new-2"));
  EXPECT_TRUE(exists(".redlock-cli-new-3")) << "its maker may be at it";
}

TEST_F(SweepTest, WhatIsNotOursStays) {
  const std::string hash = sha256_hex("x");
  make_old(make_file(".redlock-cli-new-notes"));
  make_old(make_file(".new-1"));
  make_old(make_file(hash));
  make_file("clock-" + hash);
  make_old(make_file("wake-" + hash));
  ASSERT_EQ(::mkfifo(root_.file("wake-cafe").c_str(), 0600), 0);
  sweep();
  EXPECT_TRUE(exists(".redlock-cli-new-notes"));
  EXPECT_TRUE(exists(".new-1"));
  EXPECT_TRUE(exists(hash)) << "it is empty";
  EXPECT_TRUE(exists("clock-" + hash));
  EXPECT_TRUE(exists("wake-" + hash));
  EXPECT_TRUE(exists("wake-cafe"));
}

TEST_F(SweepTest, ASocketStays) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = "wake-" + sha256_hex("x");
  const std::string path = root_.file(name);
  ASSERT_LT(path.size(), sizeof(address.sun_path));
  std::ranges::copy(path, address.sun_path);
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  sweep();
  EXPECT_TRUE(exists(name));
}

TEST_F(SweepTest, ManyWaitersDoNotKeepAnIdleLockFile) {
  std::vector<Subscription> waiters;
  for (int i = 0; i < 50; ++i)
    waiters.push_back(std::move(*Subscription::open(directory_, std::to_string(i))));
  ASSERT_TRUE(LockFile::make(directory_, sha256_hex("idle"), time_.base({})).has_value());
  sweep();
  EXPECT_FALSE(exists(sha256_hex("idle")));
}

}  // namespace
}  // namespace redlock::local
