#include "core/queue.hpp"

#include <gtest/gtest.h>

namespace redlock {
namespace {

using namespace std::chrono_literals;

QueueStatus said(Milliseconds time, std::optional<Ticket> largest = std::nullopt,
                 std::size_t ahead = 0) {
  QueueStatus status;
  status.time = time;
  status.max_ticket = largest;
  status.ahead = ahead;
  return status;
}

QueueView view(const std::vector<QueueStatus>& answers, std::size_t servers) {
  std::vector<const QueueStatus*> statuses(servers);
  for (std::size_t i = 0; i < answers.size(); ++i) statuses[i] = &answers[i];
  return view_of(statuses, std::vector<bool>(servers));
}

TEST(QueueView, GivesATicketFromTheMiddleOfTheClocks) {
  EXPECT_EQ(view({said(1000ms)}, 1).next_ticket, 1000U);
  EXPECT_EQ(view({said(5000ms), said(1000ms), said(3000ms)}, 3).next_ticket, 3000U);
}

TEST(QueueView, GivesATicketBehindAllInTheQueue) {
  EXPECT_EQ(view({said(1000ms, 4000), said(1000ms), said(1000ms, 2000)}, 3).next_ticket, 4001U);
}

TEST(QueueView, GivesNoTicketBeforeAQuorumHasAnswered) {
  EXPECT_FALSE(view({said(1000ms)}, 3).next_ticket);
  EXPECT_TRUE(view({said(1000ms), said(1000ms)}, 3).next_ticket);
}

TEST(QueueView, CountsThoseAheadWhereTheyAreFewest) {
  EXPECT_EQ(view({said(1ms, {}, 4), said(1ms, {}, 2), said(1ms, {}, 3)}, 3).ahead, 2U);
}

TEST(QueueView, IsQueuedWhereAQuorumHasUs) {
  QueueStatus in = said(1ms);
  in.queued = true;
  EXPECT_TRUE(view({in, in, said(1ms)}, 3).queued);
  EXPECT_FALSE(view({in, said(1ms), said(1ms)}, 3).queued);
}

TEST(QueueView, HasRoomWhereFewEnoughWaitOnAQuorum) {
  const auto in_queue = [](std::size_t before, std::size_t others) {
    QueueStatus status = said(1ms, {}, before);
    status.queued = true;
    status.others = others;
    return status;
  };
  const auto room = [](const std::vector<QueueStatus>& answers, std::size_t servers,
                       std::size_t max_waiting) {
    std::vector<const QueueStatus*> statuses(servers);
    for (std::size_t i = 0; i < answers.size(); ++i) statuses[i] = &answers[i];
    return view_of(statuses, std::vector<bool>(servers), {.max_waiting = max_waiting}).room;
  };
  EXPECT_EQ(room({in_queue(0, 0)}, 1, 1), Room::enough);
  EXPECT_EQ(room({in_queue(1, 1)}, 1, 2), Room::enough);
  EXPECT_EQ(room({in_queue(1, 1)}, 1, 1), Room::none);
  EXPECT_EQ(room({in_queue(0, 1)}, 1, 1), Room::none) << "it came first, whatever its ticket";
  EXPECT_EQ(room({in_queue(1, 1), in_queue(0, 0), in_queue(0, 0)}, 3, 1), Room::enough);
  EXPECT_EQ(room({in_queue(1, 1), in_queue(1, 1)}, 3, 1), Room::none);
  EXPECT_EQ(room({in_queue(0, 1), in_queue(0, 1), in_queue(0, 0)}, 3, 1), Room::contended);
  EXPECT_EQ(room({in_queue(1, 1), in_queue(0, 0)}, 3, 1), Room::contended) << "one is missing";
  EXPECT_EQ(room({said(1ms), said(1ms)}, 3, 1), Room::unknown) << "in no queue";
}

TEST(QueueView, MayChangeWhenAQuorumMayHaveChanged) {
  QueueStatus soon = said(1ms);
  soon.may_change = 100ms;
  QueueStatus later = said(1ms);
  later.may_change = 900ms;
  EXPECT_EQ(view({soon, later, said(1ms)}, 3).may_change, 900ms);
  EXPECT_FALSE(view({soon, said(1ms), said(1ms)}, 3).may_change);  // two never change by themselves
  const std::vector<const QueueStatus*> statuses{&soon, &later, &later};
  EXPECT_EQ(view_of(statuses, {true, false, false}).may_change, 900ms);  // what was granted is free
  EXPECT_EQ(view_of(statuses, {true, true, false}).may_change, 0ms);
}

TEST(QueueView, NamesTheLowestSlotThatAQuorumHasFree) {
  QueueStatus a = said(1ms);
  a.free_slots = "1011";
  QueueStatus b = said(1ms);
  b.free_slots = "0101";
  QueueStatus c = said(1ms);
  c.free_slots = "0011";
  EXPECT_EQ(view({a, b, c}, 3).slots, Slots{2});
  EXPECT_EQ(view({a, b, c}, 3).taken_slots.taken, 2U);
  EXPECT_EQ(view({a, b, c}, 3).taken_slots.limit, 4U);
  EXPECT_TRUE(view({a}, 3).slots.empty());
  const auto two_of = [](const std::vector<QueueStatus>& answers) {
    std::vector<const QueueStatus*> statuses;
    for (const QueueStatus& answer : answers) statuses.push_back(&answer);
    return view_of(statuses, std::vector<bool>(answers.size()), {.take = 2}).slots;
  };
  a.free_slots = "1101";
  b.free_slots = "0110";
  c.free_slots = "1011";
  EXPECT_EQ(two_of({a, b, c}), (Slots{0, 3}));
  c.free_slots = "1010";
  EXPECT_EQ(two_of({a, b, c}), Slots()) << "each alone is free on a quorum";
}

Duration next_poll(std::size_t ahead, std::optional<Duration> may_change, bool offered = false) {
  QueueView status;
  status.ahead = ahead;
  status.may_change = may_change;
  status.offered = offered;
  return until_next_poll(status);
}

TEST(QueueView, IsOfferedWhereAQuorumIs) {
  QueueStatus offered = said(1ms);
  offered.offered = true;
  EXPECT_TRUE(view({offered, offered, said(1ms)}, 3).offered);
  EXPECT_FALSE(view({offered, said(1ms), said(1ms)}, 3).offered);
  const std::vector<const QueueStatus*> statuses{&offered, &offered, nullptr};
  EXPECT_TRUE(view_of(statuses, {true, false, false}).offered);  // what was granted is free
}

TEST(QueueView, CannotPublishUnlessAQuorumCanBeNotified) {
  QueueStatus mute = said(1ms);
  mute.cannot_publish = true;
  EXPECT_TRUE(view({mute}, 1).cannot_publish);
  EXPECT_FALSE(view({said(1ms)}, 1).cannot_publish);
  EXPECT_FALSE(view({mute, said(1ms), said(1ms)}, 3).cannot_publish);
  EXPECT_TRUE(view({mute, mute, said(1ms)}, 3).cannot_publish);
}

TEST(NextPoll, IsAsSoonAsTheOneNotifiedIsLateWhereverWeStand) {
  for (const std::size_t ahead : {0U, 1U, 2U, 99U})
    EXPECT_EQ(next_poll(ahead, 1s, true), 1s + expiry_slack) << ahead;
}

TEST(NextPoll, IsRarerFurtherBehind) {
  EXPECT_EQ(next_poll(0, 1s), 1s + expiry_slack);
  Duration before = next_poll(0, 1s);
  for (std::size_t ahead = 1; ahead < 6; ++ahead) {
    EXPECT_GT(next_poll(ahead, 1s), before) << ahead;
    before = next_poll(ahead, 1s);
  }
}

TEST(NextPoll, IsNeverLaterThanTheEntryLives) {
  EXPECT_EQ(next_poll(0, std::nullopt), max_poll_interval);
  EXPECT_EQ(next_poll(0, 24h), max_poll_interval);
  EXPECT_EQ(next_poll(1'000'000, 1s), max_poll_interval);
  EXPECT_LT(2 * max_poll_interval, entry_ttl);
  EXPECT_LT(2 * max_unnotified_poll_interval, polling_entry_ttl);
}

TEST(NextPoll, KeepsAllTogetherUnderTheAllowance) {
  for (const Duration lease : {Duration(700ms), Duration(2s), Duration(30s)}) {
    for (const std::size_t waiters : {1U, 10U, 1000U}) {
      double polls = 0;  // a second
      for (std::size_t ahead = 0; ahead < waiters; ++ahead)
        polls += 1e9 / static_cast<double>(next_poll(ahead, lease * 2 / 3).count());
      // The shortest leases there are cost a little more.
      const double allowed = lease < 2s ? 5.0 : 2.5;
      EXPECT_LE(polls, allowed + static_cast<double>(waiters) / 15) << waiters;
    }
  }
}

}  // namespace
}  // namespace redlock
