#include "core/line.hpp"

#include <gtest/gtest.h>

namespace redlock {
namespace {

using namespace std::chrono_literals;

LineWord word(Milliseconds time, std::optional<Ticket> largest = std::nullopt, std::size_t ahead = 0) {
  LineWord line;
  line.time = time;
  line.largest_ticket = largest;
  line.ahead = ahead;
  return line;
}

LineView view(const std::vector<LineWord>& words, std::size_t servers) {
  std::vector<const LineWord*> lines(servers);
  for (std::size_t i = 0; i < words.size(); ++i) lines[i] = &words[i];
  return view_of(lines, std::vector<bool>(servers));
}

TEST(LineView, GivesATicketFromTheMiddleOfTheClocks) {
  EXPECT_EQ(view({word(1000ms)}, 1).next_ticket, 1000U);
  EXPECT_EQ(view({word(5000ms), word(1000ms), word(3000ms)}, 3).next_ticket, 3000U);
}

TEST(LineView, GivesATicketBehindEverybodyWhoStandsInLine) {
  EXPECT_EQ(view({word(1000ms, 4000), word(1000ms), word(1000ms, 2000)}, 3).next_ticket, 4001U);
}

TEST(LineView, GivesNoTicketBeforeAQuorumHasAnswered) {
  EXPECT_FALSE(view({word(1000ms)}, 3).next_ticket);
  EXPECT_TRUE(view({word(1000ms), word(1000ms)}, 3).next_ticket);
}

TEST(LineView, CountsThoseAheadWhereTheyAreFewest) {
  EXPECT_EQ(view({word(1ms, {}, 4), word(1ms, {}, 2), word(1ms, {}, 3)}, 3).ahead, 2U);
}

TEST(LineView, IsInLineWhereAQuorumHasUs) {
  LineWord in = word(1ms);
  in.in_line = true;
  EXPECT_TRUE(view({in, in, word(1ms)}, 3).in_line);
  EXPECT_FALSE(view({in, word(1ms), word(1ms)}, 3).in_line);
}

TEST(LineView, MayChangeWhenAQuorumMayHaveChanged) {
  LineWord soon = word(1ms);
  soon.may_change = 100ms;
  LineWord later = word(1ms);
  later.may_change = 900ms;
  EXPECT_EQ(view({soon, later, word(1ms)}, 3).may_change, 900ms);
  EXPECT_FALSE(view({soon, word(1ms), word(1ms)}, 3).may_change);  // two never change by themselves
  const std::vector<const LineWord*> lines{&soon, &later, &later};
  EXPECT_EQ(view_of(lines, {true, false, false}).may_change, 900ms);  // what was granted is free
  EXPECT_EQ(view_of(lines, {true, true, false}).may_change, 0ms);
}

TEST(LineView, NamesTheLowestSeatThatAQuorumHasFree) {
  LineWord a = word(1ms);
  a.free_seats = "1011";
  LineWord b = word(1ms);
  b.free_seats = "0101";
  LineWord c = word(1ms);
  c.free_seats = "0011";
  EXPECT_EQ(view({a, b, c}, 3).seat, 2U);
  EXPECT_FALSE(view({a}, 3).seat);
}

Duration next_look(std::size_t ahead, std::optional<Duration> may_change, bool offered = false) {
  LineView line;
  line.ahead = ahead;
  line.may_change = may_change;
  line.offered = offered;
  return until_next_look(line);
}

TEST(LineView, IsOfferedWhereAQuorumIs) {
  LineWord offered = word(1ms);
  offered.offered = true;
  EXPECT_TRUE(view({offered, offered, word(1ms)}, 3).offered);
  EXPECT_FALSE(view({offered, word(1ms), word(1ms)}, 3).offered);
  const std::vector<const LineWord*> lines{&offered, &offered, nullptr};
  EXPECT_TRUE(view_of(lines, {true, false, false}).offered);  // what was granted is free
}

TEST(LineView, IsMuteUnlessAQuorumCanBeNotified) {
  LineWord mute = word(1ms);
  mute.mute = true;
  EXPECT_TRUE(view({mute}, 1).mute);
  EXPECT_FALSE(view({word(1ms)}, 1).mute);
  EXPECT_FALSE(view({mute, word(1ms), word(1ms)}, 3).mute);
  EXPECT_TRUE(view({mute, mute, word(1ms)}, 3).mute);
}

TEST(NextLook, IsAsSoonAsTheOneNotifiedIsLateWhereverWeStand) {
  for (const std::size_t ahead : {0U, 1U, 2U, 99U}) EXPECT_EQ(next_look(ahead, 1s, true), 1s + expiry_slack) << ahead;
}

TEST(NextLook, IsRarerFurtherBehind) {
  EXPECT_EQ(next_look(0, 1s), 1s + expiry_slack);
  Duration before = next_look(0, 1s);
  for (std::size_t ahead = 1; ahead < 6; ++ahead) {
    EXPECT_GT(next_look(ahead, 1s), before) << ahead;
    before = next_look(ahead, 1s);
  }
}

TEST(NextLook, IsNeverLaterThanTheEntryLives) {
  EXPECT_EQ(next_look(0, std::nullopt), longest_between_looks);
  EXPECT_EQ(next_look(0, 24h), longest_between_looks);
  EXPECT_EQ(next_look(1'000'000, 1s), longest_between_looks);
  EXPECT_LT(2 * longest_between_looks, entry_life);
  EXPECT_LT(2 * longest_between_polls, polling_entry_life);
}

TEST(NextLook, KeepsAllTogetherUnderTheAllowance) {
  for (const Duration lease : {Duration(700ms), Duration(2s), Duration(30s)}) {
    for (const std::size_t waiters : {1U, 10U, 1000U}) {
      double looks = 0;  // a second
      for (std::size_t ahead = 0; ahead < waiters; ++ahead)
        looks += 1e9 / static_cast<double>(next_look(ahead, lease * 2 / 3).count());
      // The shortest leases there are cost a little more.
      const double allowed = lease < 2s ? 5.0 : 2.5;
      EXPECT_LE(looks, allowed + static_cast<double>(waiters) / 15) << waiters;
    }
  }
}

}  // namespace
}  // namespace redlock
