#include "output/holder_text.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <ctime>

namespace redlock::output {
namespace {

using namespace std::chrono_literals;

/// Held for four minutes by a `run` with a ttl of 30 s.
Holder held_by_run() {
  Holder holder;
  holder.remaining = 28s;
  holder.age = 4min;
  holder.owner =
      Owner{"ci-7", "deploy", "deploy.sh", "release 1.2", 4711, /*supervised=*/true, 30s};
  return holder;
}

TEST(HeldText, NamesTheRunAndThatItRenews) {
  EXPECT_EQ(held_text(held_by_run()),
            "held by deploy@ci-7 (run pid 4711: deploy.sh), \"release 1.2\", for 4m, last renewed "
            "2s ago");
}

TEST(HeldText, ReportsAnOverdueRenewal) {
  Holder holder = held_by_run();
  holder.remaining = 15s;  // the next is due with 20 s left
  EXPECT_NE(held_text(holder).find(", last renewed 15s ago"), std::string::npos);
  holder.remaining = 12s;
  EXPECT_EQ(held_text(holder),
            "held by deploy@ci-7 (run pid 4711: deploy.sh), \"release 1.2\", for 4m, not renewed "
            "for 18s, expires in 12s");
}

TEST(HeldText, ReportsWhenALeaseExpiresThatNothingRenews) {
  Holder holder = held_by_run();
  holder.owner =
      Owner{"ci-7", "deploy", "release.sh", "", 4711, /*supervised=*/false, Duration::zero()};
  holder.remaining = 58s;
  EXPECT_EQ(held_text(holder),
            "held by deploy@ci-7 (pid 4711: release.sh), for 4m, expires in 58s");
}

TEST(HeldText, LeavesRenewalOpenForForeignClientsAndOlderRecords) {
  Holder holder;
  holder.foreign = true;
  holder.remaining = 58s;
  EXPECT_EQ(held_text(holder), "held by a foreign client, expires in 58s unless it is renewed");
  holder = held_by_run();
  holder.owner->renewed_for.reset();
  EXPECT_NE(held_text(holder).find(", renewed"), std::string::npos) << "every run renews";
  holder.owner->supervised = false;
  EXPECT_NE(held_text(holder).find(", for 4m, expires in 28s unless it is renewed"),
            std::string::npos);
}

TEST(HeldText, ReportsHowLongALeaseIsKeptAndHowItsCommandEnded) {
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  Holder holder = held_by_run();
  holder.owner->finished = Finished{60s, 0, std::nullopt};
  holder.remaining = 47s;
  const std::string text = held_text(holder);
  EXPECT_TRUE(text.starts_with("kept until ")) << text;
  EXPECT_TRUE(text.ends_with(
      " by --min-hold of deploy@ci-7 (deploy.sh), \"release 1.2\"; ended 13s ago, exit status 0"))
      << text;
  holder.owner->finished = Finished{60s, std::nullopt, 9};
  EXPECT_TRUE(held_text(holder).ends_with("; ended 13s ago, signal 9"));
}

TEST(HeldText, ReportsTheTimeOfDayUntilWhichALeaseIsKept) {
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  Holder holder = held_by_run();
  holder.owner->finished = Finished{10h, 0, std::nullopt};
  const auto expected = [&] {
    const std::time_t end =
        std::chrono::ceil<std::chrono::seconds>(wall_clock_now() + *holder.remaining).count();
    std::array<char, 32> text{};
    std::strftime(text.data(), text.size(), "%H:%M:%S by", std::gmtime(&end));
    return std::string(text.data());
  };
  holder.remaining = 1h;
  // A second attempt, in case the clock moved to the next second between the two calls.
  const bool found = held_text(holder).find(expected()) != std::string::npos ||
                     held_text(holder).find(expected()) != std::string::npos;
  EXPECT_TRUE(found) << held_text(holder);
}

TEST(HeldText, AdvisesToUpgradeWhenANewerVersionHoldsIt) {
  Holder holder = held_by_run();
  holder.owner->newer = true;
  EXPECT_EQ(held_text(holder),
            "held by deploy@ci-7 (run pid 4711: deploy.sh), \"release 1.2\", for 4m, last renewed "
            "2s ago; a "
            "newer version holds it: upgrade "
            "redlock-cli");
}

TEST(HeldText, ReportsNoExpiryOfASharedLock) {
  Holder holder = held_by_run();
  holder.shared = true;
  EXPECT_EQ(held_text(holder),
            "held by processes that share it, the latest deploy@ci-7 (run pid 4711: deploy.sh), "
            "\"release 1.2\", for 4m");
}

TEST(HeldText, ReportsASharedLockUnderWhichNoCommandRuns) {
  Holder holder = held_by_run();
  holder.shared = true;
  holder.owner->finished = Finished{5min, 0, std::nullopt};
  const auto begins = [&](std::string_view text) { return held_text(holder).starts_with(text); };
  EXPECT_TRUE(begins("held by processes that share it, the last kept until ")) << held_text(holder);
  EXPECT_NE(held_text(holder).find(" by --min-hold of deploy@ci-7 (deploy.sh), \"release 1.2\""),
            std::string::npos);
  holder.owner->slots = 2;
  EXPECT_TRUE(begins("held in slots, the last kept until ")) << held_text(holder);
}

TEST(ForeignKeyText, ReportsTypeSizeAndExpiry) {
  ForeignKey key{};
  EXPECT_EQ(foreign_key_text(key), "a string, without expiry");
  key.size = 5;
  key.holder.remaining = 1min;
  EXPECT_EQ(foreign_key_text(key), "a string of 5 bytes, expires in 1m");
  key.holder.type = "hash";
  key.size = 1;
  EXPECT_EQ(foreign_key_text(key), "a key of type hash with 1 element, expires in 1m");
  key.holder.remaining.reset();
  key.size = 3;
  EXPECT_EQ(foreign_key_text(key), "a key of type hash with 3 elements, without expiry");
}

}  // namespace
}  // namespace redlock::output
