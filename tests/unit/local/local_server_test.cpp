#include "store/local/local_server.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "../samples.hpp"
#include "../store/drive.hpp"
#include "shifted_clock.hpp"
#include "support/digest.hpp"

namespace redlock::local {
namespace {

using namespace std::chrono_literals;
using testing::Drive;
using testing::Eventual;
using testing::resource;
using testing::token;

class LocalServerTest : public ::testing::Test {
 protected:
  [[nodiscard]] asio::awaitable<AcquireVote> ask_acquire(Token with, Instant deadline,
                                                         std::string_view key = "deploy") {
    return server_.acquire({resource(key), std::move(with), Ttl::from(30s).value(),
                            Owner{"web1", "alice", "sh", "", 1, false}},
                           deadline);
  }
  AcquireVote acquire(Token with = token(), std::string_view key = "deploy") {
    return drive_.run(ask_acquire(std::move(with), drive_.soon(), key));
  }
  Fence acquired(Token with = token(), std::string_view key = "deploy") {
    const auto vote = acquire(std::move(with), key);
    if (const auto* fault = std::get_if<Fault>(&vote)) ADD_FAILURE() << fault->text;
    const auto* grant = std::get_if<Granted>(&vote);
    EXPECT_NE(grant, nullptr) << vote.index();
    return grant != nullptr ? grant->fence : Fence();
  }
  InspectVote inspect(std::string_view key = "deploy") {
    return drive_.run(server_.inspect(resource(key), std::nullopt, drive_.soon()));
  }
  bool is_free(std::string_view key = "deploy") {
    return std::holds_alternative<Free>(inspect(key));
  }
  ReleaseVote release(Token with = token()) {
    return drive_.run(server_.release({resource("deploy"), std::move(with), false}, drive_.soon()));
  }
  ExtendVote extend(Token with = token()) {
    return drive_.run(server_.extend({resource("deploy"), std::move(with), Ttl::from(30s).value()},
                                     drive_.soon()));
  }
  void close() { drive_.run(server_.close(drive_.soon())); }

  [[nodiscard]] std::string file(std::string_view key = "deploy") const {
    return root_.file(sha256_hex(key));
  }
  [[nodiscard]] std::size_t files() const {
    return lock_files_in(*open_directory({root_.file("."), false})).size();
  }
  /// As another process would have it.
  [[nodiscard]] UniqueFd occupy() const {
    UniqueFd fd(::open(file().c_str(), O_RDWR | O_CLOEXEC));
    EXPECT_EQ(::flock(fd.get(), LOCK_EX | LOCK_NB), 0);
    return fd;
  }

  /// Adds a key to the lock's file, which then has a body of this size.
  void fill_up_to(std::size_t size) const {
    const auto time = KernelTime::find(clock_).value();
    const auto directory = open_directory({root_.file("."), false});
    const auto opened = LockFile::try_open(*directory, sha256_hex("deploy"));
    const auto& lock = std::get<LockFile>(opened);
    const auto found = lock.load(time);
    auto entries = std::get<format::Stored>(*found).entries;
    entries["filler"] = Entry{std::string(), std::nullopt};
    entries["filler"].value = std::string(size - format::encode(entries).size(), 'x');
    const auto& base = std::get<format::Stored>(*found).base;
    ASSERT_TRUE(lock.store(*found, base, format::encode(entries)).has_value());
  }

  testing::Directory root_;
  Drive drive_;
  testing::ShiftedClock clock_{drive_.clock()};
  LocalServer server_{drive_.executor(), clock_, Location{root_.file("."), false}};
};

const Fault* fault_in(const AcquireVote& vote) {
  return std::get_if<Fault>(&vote);
}

TEST_F(LocalServerTest, OneHoldsTheLockUntilItIsReleased) {
  const Fence first = acquired(token('a'));
  const auto refused = acquire(token('b'));
  ASSERT_TRUE(std::holds_alternative<Held>(refused));
  EXPECT_EQ(std::get<Held>(refused).holder.fence, first);
  EXPECT_TRUE(std::holds_alternative<Extended>(extend(token('a'))));
  EXPECT_TRUE(std::holds_alternative<NotOurs>(extend(token('b'))));
  EXPECT_TRUE(std::holds_alternative<Released>(release(token('a'))));
  EXPECT_GT(acquired(token('b')), first);
}

TEST_F(LocalServerTest, AFileThatIsRemovedWhileItIsWrittenGrantsNothing) {
  acquired(token('a'));
  EXPECT_TRUE(std::holds_alternative<Released>(release(token('a'))));
  // The time is read when the file has been opened and locked.
  clock_.when_read = [this] { std::filesystem::remove(file()); };
  const auto vote = acquire(token('b'));
  clock_.when_read = nullptr;
  ASSERT_NE(fault_in(vote), nullptr);
  EXPECT_EQ(fault_in(vote)->kind, FaultKind::silent);
  acquired(token('c'));
}

TEST_F(LocalServerTest, AnotherServerObjectSeesTheSameLocks) {
  acquired();
  LocalServer other(drive_.executor(), clock_, Location{root_.file("."), false});
  const InspectVote vote =
      drive_.run(other.inspect(resource("deploy"), std::nullopt, drive_.soon()));
  EXPECT_TRUE(std::holds_alternative<Taken>(vote));
}

TEST_F(LocalServerTest, ALeaseEndsByTheBootClock) {
  acquired(token('a'));
  clock_.boot_shift = 29s;
  EXPECT_TRUE(std::holds_alternative<Held>(acquire(token('b'))));
  clock_.boot_shift = 31s;
  acquired(token('b'));
}

TEST_F(LocalServerTest, AStepOfTheWallClockEndsNoLeaseAndTurnsNoFenceBack) {
  const Fence first = acquired(token('a'));
  clock_.wall_shift = std::chrono::hours(1);
  EXPECT_FALSE(is_free());
  clock_.wall_shift = std::chrono::hours(-1);
  EXPECT_FALSE(is_free());
  release(token('a'));
  EXPECT_GT(acquired(token('b')), first);
}

TEST_F(LocalServerTest, FilesOfLocksThatAreNoMoreAreRemovedAndNoFenceTurnsBack) {
  const Fence first = acquired(token('a'));
  release(token('a'));
  // As soon as it may be forgotten, and with a wall clock that would give a smaller one.
  clock_.boot_shift = 10s + 100ms;
  clock_.wall_shift = std::chrono::hours(-1);
  for (int i = 0; std::filesystem::exists(file()); ++i) {
    ASSERT_LT(i, 1000);
    acquired(token('b'), "other " + std::to_string(i));
  }
  EXPECT_GT(acquired(token('a')), first);
}

TEST_F(LocalServerTest, FilesOfLocksThatMatterAreKept) {
  acquired(token('a'), "held");
  clock_.boot_shift = 20s;
  clock_.wall_shift = 20s;
  acquired(token('a'), "just released");
  drive_.run(server_.release({resource("just released"), token('a'), false}, drive_.soon()));
  acquired(token('a'), "released by hand");
  drive_.run(server_.release({resource("released by hand"), token('a'), true}, drive_.soon()));
  for (int i = 0; i < 50; ++i) acquired(token('b'), "other " + std::to_string(i));
  EXPECT_TRUE(std::filesystem::exists(file("held")));
  EXPECT_TRUE(std::filesystem::exists(file("just released")));
  EXPECT_TRUE(std::filesystem::exists(file("released by hand")));
  EXPECT_EQ(files(), 53U);
}

TEST_F(LocalServerTest, TheNumberOfFilesFollowsThatOfTheLocksInUse) {
  for (int i = 0; i < 300; ++i) {
    clock_.boot_shift += 1s;  // a lease of 30 seconds matters for so many locks more
    acquired(token('a'), "job " + std::to_string(i));
  }
  EXPECT_LT(files(), 100U);
}

TEST_F(LocalServerTest, AWaiterRemovesWhatKilledOnesLeft) {
  const std::string left = root_.file("wake-" + sha256_hex("killed"));
  ASSERT_EQ(::mkfifo(left.c_str(), 0600), 0);
  const auto fault = drive_.run(server_.subscribe(
      resource("deploy"), "waiter", [](const Notification&) {}, drive_.soon()));
  EXPECT_FALSE(fault.has_value());
  EXPECT_FALSE(std::filesystem::exists(left));
}

TEST_F(LocalServerTest, ADamagedClockIsAFault) {
  acquired();
  // An offset that overflows, too.
  for (const char* text : {"soon", "9223372036854775807", "20000000000000000"}) {
    std::ofstream(root_.file("clock-redlock-cli")) << text;
    const auto vote = acquire(token('b'));
    ASSERT_NE(fault_in(vote), nullptr);
    EXPECT_EQ(fault_in(vote)->kind, FaultKind::garbage) << text;
  }
}

/// As many waiters would fill it.
TEST_F(LocalServerTest, AFullFileTakesNoMoreButLetsItsHolderGo) {
  acquired(token('a'));
  fill_up_to(format::max_body - 1000);
  EXPECT_TRUE(std::holds_alternative<Extended>(extend(token('a'))));
  EXPECT_TRUE(std::holds_alternative<Released>(release(token('a'))));
  const auto refused = acquire(token('b'));
  ASSERT_NE(fault_in(refused), nullptr);
  EXPECT_EQ(fault_in(refused)->kind, FaultKind::unavailable) << fault_in(refused)->text;
  EXPECT_TRUE(is_free());
}

TEST_F(LocalServerTest, ALeaseThatNeverFitsIsRefusedForGood) {
  const auto vote = drive_.run(
      server_.acquire({resource("deploy"), token('a'), Ttl::from(30s).value(),
                       Owner{"web1", "alice", "sh", std::string(format::max_body, 'x'), 1, false}},
                      drive_.soon()));
  ASSERT_NE(fault_in(vote), nullptr);
  EXPECT_EQ(fault_in(vote)->kind, FaultKind::misconfigured);
  EXPECT_NE(fault_in(vote)->text.find("has room for"), std::string::npos) << fault_in(vote)->text;
}

TEST_F(LocalServerTest, LookingMakesNoFile) {
  EXPECT_TRUE(is_free());
  EXPECT_EQ(files(), 0U);
}

TEST_F(LocalServerTest, ListNamesTheLocksThereAre) {
  const std::string brackets = "a}b{c";
  for (const std::string& key :
       {std::string("deploy"), brackets, std::string(Resource::max_bytes, 'x')})
    acquired(token(), key);
  release();
  std::ofstream(root_.file("README")) << "not a lock";
  const auto listed = drive_.run(server_.list({.answer_timeout = testing::timeout}));
  ASSERT_TRUE(listed.has_value()) << listed.error().text;
  EXPECT_TRUE(listed->skipped.empty());
  EXPECT_EQ(
      listed->resources,
      (std::vector<Resource>{resource(brackets), resource(std::string(Resource::max_bytes, 'x'))}));
}

TEST_F(LocalServerTest, AFileThatAnotherProcessKeepsIsSilence) {
  acquired();
  const UniqueFd other = occupy();
  const auto vote = drive_.run(ask_acquire(token('b'), clock_.now() + 50ms));
  ASSERT_NE(fault_in(vote), nullptr);
  EXPECT_EQ(fault_in(vote)->kind, FaultKind::silent);
  acquired(token(), "other");
  const auto listed = drive_.run(server_.list({.answer_timeout = 50ms}));
  ASSERT_TRUE(listed.has_value());
  EXPECT_EQ(listed->resources, std::vector<Resource>{resource("other")});
  ASSERT_EQ(listed->skipped.size(), 1U);
  EXPECT_EQ(listed->skipped.front().kind, FaultKind::silent);
}

TEST_F(LocalServerTest, AFileThatAnotherProcessLeavesIsUsed) {
  acquired(token('a'));
  release(token('a'));
  UniqueFd other = occupy();
  Eventual<AcquireVote> vote = drive_.start(ask_acquire(token('b'), drive_.soon()));
  drive_.run(sleep_until(drive_.clock(), drive_.clock().now() + 5ms));
  EXPECT_FALSE(vote.ready());
  other.reset();
  EXPECT_TRUE(std::holds_alternative<Granted>(drive_.run(vote.get())));
}

TEST_F(LocalServerTest, AnAttemptThatIsUndoneBeforeItRunsDoesNotRun) {
  acquired(token('a'));
  release(token('a'));
  UniqueFd other = occupy();
  Eventual<AcquireVote> vote = drive_.start(ask_acquire(token('b'), drive_.soon()));
  drive_.run(sleep_until(drive_.clock(), drive_.clock().now() + 5ms));
  server_.undo(resource("deploy"), token('b'));
  other.reset();
  EXPECT_NE(fault_in(drive_.run(vote.get())), nullptr);
  close();
  EXPECT_TRUE(is_free());
}

TEST_F(LocalServerTest, AnAttemptThatRanIsUndoneBeforeTheEnd) {
  acquired(token('a'));
  server_.undo(resource("deploy"), token('b'));  // never asked for: touches nothing
  close();
  EXPECT_FALSE(is_free());
  server_.undo(resource("deploy"), token('a'));
  close();
  EXPECT_TRUE(is_free());
}

TEST_F(LocalServerTest, ClosingDoesNotWaitLongerThanItsDeadline) {
  acquired();
  UniqueFd other = occupy();
  server_.undo(resource("deploy"), token());
  drive_.run(server_.close(clock_.now() + 20ms));
  other.reset();
  close();
  EXPECT_TRUE(is_free()) << "close() returned while the undo could still be done";
}

TEST_F(LocalServerTest, ADamagedFileIsNoFreeLock) {
  acquired();
  ASSERT_EQ(::truncate(file().c_str(), 1000), 0);
  const auto vote = acquire(token('b'));
  ASSERT_NE(fault_in(vote), nullptr);
  EXPECT_EQ(fault_in(vote)->kind, FaultKind::garbage);
  EXPECT_NE(fault_in(vote)->text.find(sha256_hex("deploy")), std::string::npos)
      << "the user must be able to find it";
  acquired(token(), "other");
  const auto listed = drive_.run(server_.list({.answer_timeout = testing::timeout}));
  ASSERT_TRUE(listed.has_value());
  EXPECT_EQ(listed->resources, std::vector<Resource>{resource("other")});
  ASSERT_EQ(listed->skipped.size(), 1U);
  EXPECT_EQ(listed->skipped.front().kind, FaultKind::garbage);
}

TEST_F(LocalServerTest, ARemovedFileIsAnEmptyOne) {
  acquired(token('a'));
  ASSERT_EQ(::unlink(file().c_str()), 0);
  EXPECT_TRUE(std::holds_alternative<NotOurs>(extend(token('a'))));
  acquired(token('b'));
}

TEST_F(LocalServerTest, ARebootFreesEveryLockAndTurnsNoFenceBack) {
  clock_.boot_shift = std::chrono::hours(100);
  const Fence first = acquired(token('a'));
  acquired(token('a'), "other");
  clock_.boot_shift = 0s;
  clock_.wall_shift = 10s;
  EXPECT_TRUE(drive_.run(server_.list({.answer_timeout = testing::timeout}))->resources.empty());
  EXPECT_GT(acquired(token('b')), first);
  acquired(token('b'), "other");
  EXPECT_TRUE(std::holds_alternative<NotOurs>(extend(token('a'))));
}

/// A lock file may show a reboot that the clock file, written earlier, does not.
TEST_F(LocalServerTest, ARebootThatTheClockDoesNotShowTurnsNoFenceBack) {
  acquired(token('a'), "other");
  clock_.boot_shift = 4s;
  const Fence first = acquired(token('a'));
  clock_.boot_shift = 2s;
  clock_.wall_shift = 10s;
  EXPECT_GT(acquired(token('b')), first);
}

/// After a reboot that cannot be proven, because the host now runs for longer.
TEST_F(LocalServerTest, WhatMayBeOfThisBootEndsByItsOwnExpiry) {
  acquired(token('a'));
  clock_.wall_shift = std::chrono::hours(1);
  clock_.boot_shift = 29s;
  EXPECT_TRUE(std::holds_alternative<Held>(acquire(token('b'))));
  clock_.boot_shift = 31s;
  acquired(token('b'));
}

/// It must show a reboot soon after, and programs that remove old files must leave it alone.
TEST_F(LocalServerTest, TheClockFileIsRenewedWhileItIsUsed) {
  const std::string clock_file = root_.file("clock-redlock-cli");
  const auto content = [&] {
    std::string text;
    std::getline(std::ifstream(clock_file), text);
    return text;
  };
  inspect();
  const std::string made = content();
  inspect();
  EXPECT_EQ(content(), made) << "not each time";
  clock_.boot_shift = 6s;
  inspect();
  EXPECT_NE(content(), made);
  EXPECT_EQ(content().substr(0, 21), made.substr(0, 21)) << "the offset stays";
}

TEST_F(LocalServerTest, ALostClockFileMovesNoLease) {
  acquired(token('a'));
  ASSERT_TRUE(std::filesystem::remove(root_.file("clock-redlock-cli")));
  clock_.wall_shift = std::chrono::hours(1);
  EXPECT_TRUE(std::holds_alternative<Held>(acquire(token('b'))));
  clock_.boot_shift = 31s;
  acquired(token('b'));
}

TEST_F(LocalServerTest, ADirectoryThatCannotBeUsedIsAFault) {
  LocalServer nowhere(drive_.executor(), clock_, Location{root_.file("none"), false});
  const InspectVote vote =
      drive_.run(nowhere.inspect(resource("deploy"), std::nullopt, drive_.soon()));
  ASSERT_TRUE(std::holds_alternative<Fault>(vote));
  EXPECT_EQ(std::get<Fault>(vote).kind, FaultKind::misconfigured);
}

TEST_F(LocalServerTest, ADirectoryThatWasMovedAwayHoldsNothing) {
  const std::string place = root_.file("locks");
  ASSERT_EQ(::mkdir(place.c_str(), 0700), 0);
  LocalServer server(drive_.executor(), clock_, Location{place, false});
  const auto ask = [&](Token with) {
    return drive_.run(server.acquire(
        {resource("deploy"), std::move(with), Ttl::from(30s).value(), {}}, drive_.soon()));
  };
  ASSERT_TRUE(std::holds_alternative<Granted>(ask(token('a'))));
  std::filesystem::rename(place, root_.file("moved"));
  ASSERT_EQ(::mkdir(place.c_str(), 0700), 0);
  const ExtendVote vote = drive_.run(
      server.extend({resource("deploy"), token('a'), Ttl::from(30s).value()}, drive_.soon()));
  EXPECT_TRUE(std::holds_alternative<NotOurs>(vote))
      << "the new directory counts for its holder, too";
}

}  // namespace
}  // namespace redlock::local
