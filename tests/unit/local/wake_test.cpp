#include "store/local/wake.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "../store/drive.hpp"

namespace redlock::local {
namespace {

class WakeTest : public ::testing::Test {
 protected:
  WakeTest() : directory_(std::move(open_directory({root_.file("."), false}).value())) {}

  Subscription subscribe(std::string_view channel) const {
    auto subscription = Subscription::open(directory_, channel);
    if (!subscription) throw std::runtime_error(subscription.error().text);
    return std::move(*subscription);
  }
  static bool is_readable(const Subscription& subscription) {
    pollfd waiting{subscription.fd(), POLLIN, 0};
    return ::poll(&waiting, 1, 0) == 1 && waiting.revents == POLLIN;
  }
  [[nodiscard]] std::ptrdiff_t files() const {
    return std::distance(std::filesystem::directory_iterator(root_.file("")), {});
  }

  testing::Directory root_;
  Directory directory_;
};

TEST_F(WakeTest, ASubscriberReceivesWhatIsPublished) {
  const Subscription subscription = subscribe("one");
  EXPECT_FALSE(is_readable(subscription));
  EXPECT_EQ(publish(directory_, "one", "first"), 1);
  EXPECT_EQ(publish(directory_, "one", ""), 1);
  EXPECT_TRUE(is_readable(subscription));
  EXPECT_EQ(subscription.messages(), (std::vector<std::string>{"first", ""}));
  EXPECT_FALSE(is_readable(subscription)) << "and no end when the publisher goes";
}

TEST_F(WakeTest, ChannelsAreSeparate) {
  const Subscription one = subscribe("one");
  const Subscription two = subscribe("two/../with\nany bytes");
  EXPECT_EQ(publish(directory_, "two/../with\nany bytes", "x"), 1);
  EXPECT_FALSE(is_readable(one));
  EXPECT_EQ(two.messages().size(), 1U);
}

TEST_F(WakeTest, NoneIsReachedWithoutASubscriber) {
  EXPECT_EQ(publish(directory_, "none", "x"), 0);
  EXPECT_EQ(subscribers(directory_, "none"), 0);
  { const Subscription subscription = subscribe("gone"); }
  EXPECT_EQ(publish(directory_, "gone", "x"), 0);
  EXPECT_EQ(files(), 0);
}

TEST_F(WakeTest, AKilledSubscriberIsNotReachedAndLeavesNothing) {
  std::array<int, 2> ready{};
  ASSERT_EQ(::pipe(ready.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const Subscription subscription = subscribe("killed");
    if (::write(ready[1], "x", 1) != 1) ::_exit(EXIT_FAILURE);
    for (;;) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_EQ(publish(directory_, "killed", "x"), 1);
  EXPECT_EQ(subscribers(directory_, "killed"), 1);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(subscribers(directory_, "killed"), 0);
  EXPECT_EQ(publish(directory_, "killed", "x"), 0);
  EXPECT_EQ(files(), 0);
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(WakeTest, AFullPipeIsNoSilence) {
  const Subscription subscription = subscribe("full");
  for (int i = 0; i < 100; ++i) EXPECT_EQ(publish(directory_, "full", std::string(1000, 'x')), 1);
  EXPECT_FALSE(subscription.messages().empty());
}

TEST_F(WakeTest, WhatIsNoFifoIsNotWrittenTo) {
  { const Subscription subscription = subscribe("file"); }
  std::string name;
  {
    const Subscription subscription = subscribe("file");
    name = std::filesystem::directory_iterator(root_.file(""))->path();
  }
  std::ofstream(name) << "theirs";
  EXPECT_EQ(publish(directory_, "file", "x"), 0);
  EXPECT_EQ(std::filesystem::file_size(name), 6U);
}

TEST_F(WakeTest, WhoMayTakeTheLockMayWake) {
  EXPECT_EQ(::chmod(root_.file("").c_str(), 02770), 0);
  directory_ = std::move(open_directory({root_.file("."), false}).value());
  const Subscription subscription = subscribe("shared");
  EXPECT_EQ(std::filesystem::status(std::filesystem::directory_iterator(root_.file(""))->path())
                .permissions(),
            static_cast<std::filesystem::perms>(0660));
}

TEST_F(WakeTest, NothingButItsFifoIsRemovedWithASubscription) {
  const std::string name = [&] {
    const Subscription subscription = subscribe("one");
    const auto entry = *std::filesystem::directory_iterator(root_.file(""));
    std::filesystem::remove(entry.path());
    std::ofstream(entry.path()) << "another's";
    return entry.path().string();
  }();
  EXPECT_TRUE(std::filesystem::exists(name));
}

}  // namespace
}  // namespace redlock::local
