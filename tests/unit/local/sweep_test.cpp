#include "store/local/sweep.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "../store/drive.hpp"
#include "store/local/wake.hpp"

namespace redlock::local {
namespace {

namespace fs = std::filesystem;

/// Fewer files than one sweep looks at.
class SweepTest : public ::testing::Test {
 protected:
  SweepTest() : directory_(std::move(open_directory({root_.file("."), false}).value())) {}

  void sweep() const { local::sweep(directory_, "", {}); }
  [[nodiscard]] bool exists(const std::string& name) const {
    return fs::exists(fs::symlink_status(root_.file(name)));
  }

  testing::Directory root_;
  Directory directory_;
};

TEST_F(SweepTest, WhatKilledWaitersLeftGoes) {
  // With their processes, their ends of it are gone.
  for (const char* name : {"wake-queued", ".wake-not-yet-named"})
    ASSERT_EQ(::mkfifo(root_.file(name).c_str(), 0600), 0);
  sweep();
  EXPECT_FALSE(exists("wake-queued"));
  EXPECT_FALSE(exists(".wake-not-yet-named"));
}

TEST_F(SweepTest, AWaiterThatLivesIsHeardStill) {
  const auto subscription = Subscription::open(directory_, "alive");
  ASSERT_TRUE(subscription.has_value()) << subscription.error().text;
  sweep();
  EXPECT_EQ(publish(directory_, "alive", "x"), 1);
}

TEST_F(SweepTest, AFileThatWasNeverFinishedGoesOnceItIsOld) {
  for (const char* name : {".new-1", ".new-2"}) std::ofstream(root_.file(name)) << "x";
  fs::last_write_time(root_.file(".new-1"),
                      fs::file_time_type::clock::now() - testing::timeout * 3);
  sweep();
  EXPECT_FALSE(exists(".new-1"));
  EXPECT_TRUE(exists(".new-2")) << "its maker may be at it";
}

TEST_F(SweepTest, WhatIsNotOursStays) {
  std::ofstream(root_.file("notes")) << "theirs";
  std::ofstream(root_.file("wake-notes")) << "theirs";
  ASSERT_EQ(::mkfifo(root_.file("fifo").c_str(), 0600), 0);
  sweep();
  EXPECT_TRUE(exists("notes"));
  EXPECT_TRUE(exists("wake-notes"));
  EXPECT_TRUE(exists("fifo"));
}

}  // namespace
}  // namespace redlock::local
