#include "engine/wait_state.hpp"

#include <gtest/gtest.h>

namespace redlock {
namespace {

using namespace std::chrono_literals;
using Why = AcquireDecision;
using Queue = WaitState::Queue;
using Held = WaitState::Held;
using Split = WaitState::Split;
using Outage = WaitState::Outage;
using Guarded = WaitState::Guarded;

/// No jitter above the least: jittered(d) is d/2, split_delay one round trip, unavailable_delay
/// half.
std::uint64_t no_bits() {
  return 0;
}

constexpr Instant start{100s};
constexpr Instant no_end = Instant::max();
constexpr WaitPolicy policy{.wait = std::nullopt, .unavailable_wait = 10s, .retry_delay = 100ms};

AttemptFailure failed(Why why) {
  AttemptFailure failure{.why = why, .holder = std::nullopt, .faults = {}};
  failure.answered_within = 10ms;
  return failure;
}

/// As a quorum of servers shows the queue to one who has `ahead` waiters before it.
AttemptFailure busy_behind(std::size_t ahead, std::optional<Duration> may_change = 20s) {
  AttemptFailure failure = failed(Why::busy);
  failure.queue.next_ticket = 7;
  failure.queue.ahead = ahead;
  failure.queue.queued = true;
  failure.queue.may_change = may_change;
  return failure;
}

AttemptFailure of_holder(AttemptFailure failure, const Holder& holder) {
  failure.holder = holder;
  return failure;
}

Holder aged(Duration age, bool shared = false) {
  Holder holder;
  holder.age = age;
  holder.shared = shared;
  return holder;
}

struct Row {
  const char* name;
  WaitState state;
  AttemptFailure failure;
  WaitState next;
  std::optional<Duration> delay;  ///< nothing: gives up
  Why told;
  Duration left = Duration::max();  ///< of the wait
  bool may_be_notified = true;
};

WaitStep step_of(const Row& row) {
  const WaitContext context{start, later(start, row.left), row.may_be_notified, 1s};
  return after_failure(row.state, row.failure, policy, context, no_bits);
}

void expect_rows(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const WaitStep step = step_of(row);
    EXPECT_EQ(step.state, row.next);
    EXPECT_EQ(step.why, row.told);
    ASSERT_EQ(step.try_at.has_value(), row.delay.has_value());
    if (!row.delay) continue;
    EXPECT_EQ(*step.try_at - start, *row.delay);
  }
}

TEST(WaitState, JoinsTheQueueWhenAQuorumAnswersAndLeavesItAfterTwoOutages) {
  AttemptFailure split_with_ticket = busy_behind(0);
  split_with_ticket.why = Why::split;
  expect_rows({
      {"a newcomer meets a holder",
       {Queue::not_joined, Held{}},
       busy_behind(0),
       {Queue::joining, Held{}},
       0s,
       Why::busy},
      {"a newcomer meets split votes",
       {Queue::not_joined, Held{}},
       split_with_ticket,
       {Queue::joining, Held{}},
       0s,
       Why::split},
      {"without a ticket there is no queue to join",
       {Queue::not_joined, Held{}},
       failed(Why::busy),
       {Queue::not_joined, Held{}},
       50ms,
       Why::busy},
      {"the first outage is borne in the queue",
       {Queue::queued, Held{}},
       failed(Why::unavailable),
       {Queue::queued, Outage{start, 1}},
       10ms,
       Why::unavailable},
      {"the second is not",
       {Queue::queued, Outage{start, 1}},
       failed(Why::unavailable),
       {Queue::away, Outage{start, 2}},
       20ms,
       Why::unavailable},
      {"answers that came too late are an outage, too",
       {Queue::queued, Outage{start, 1}},
       failed(Why::too_slow),
       {Queue::away, Outage{start, 2}},
       20ms,
       Why::too_slow},
      {"one that left joins again, and does not know yet whether it can be queued",
       {Queue::away, Outage{start, 5}},
       busy_behind(0),
       {Queue::joining, Outage{start, 5}},
       0s,
       Why::busy},
      {"it cannot: each time it takes longer until it looks again",
       {Queue::queued, Outage{start, 5}},
       failed(Why::unavailable),
       {Queue::away, Outage{start, 6}},
       250ms,
       Why::unavailable},
      {"nor for longer than an outage is borne",
       {Queue::queued, Outage{start - 10s, 20}},
       failed(Why::unavailable),
       {Queue::away, Outage{start - 10s, 20}},
       std::nullopt,
       Why::unavailable},
      {"it can: the outage is over",
       {Queue::queued, Outage{start - 10s, 20}},
       busy_behind(0),
       {Queue::queued, Held{}},
       15s,
       Why::busy},
      {"also where the restart guard is in the way",
       {Queue::away, Outage{start, 5}},
       failed(Why::guarded),
       {Queue::joining, Guarded{}},
       0s,
       Why::guarded},
  });
}

TEST(WaitState, TriesSplitVotesAgainForASecond) {
  const AttemptFailure split = failed(Why::split);
  AttemptFailure first = split;
  first.goes_first = true;
  expect_rows({
      {"who goes first tries at once",
       {Queue::queued, Held{}},
       first,
       {Queue::queued, Split{start, 1}},
       0s,
       Why::split},
      {"but only once",
       {Queue::queued, Split{start, 1}},
       first,
       {Queue::queued, Split{start, 2}},
       15ms,
       Why::split},
      {"the others stand back",
       {Queue::queued, Held{}},
       split,
       {Queue::queued, Split{start, 1}},
       10ms,
       Why::split},
      {"after a second the lock is busy",
       {Queue::queued, Split{start - 1s, 4}},
       split,
       {Queue::queued, Split{start - 1s, 5}},
       50ms,
       Why::busy,
       Duration::max(),
       false},
      {"a run of splits ends with another answer",
       {Queue::queued, Split{start - 1s, 4}},
       busy_behind(0),
       {Queue::queued, Held{}},
       15s,
       Why::busy},
      {"an outage ends it, too",
       {Queue::queued, Split{start - 1s, 4}},
       failed(Why::unavailable),
       {Queue::queued, Outage{start, 1}},
       10ms,
       Why::unavailable},
      {"even without a wait it is tried again",
       {Queue::not_joined, Held{}},
       split,
       {Queue::not_joined, Split{start, 1}},
       10ms,
       Why::split,
       0s},
  });
}

TEST(WaitState, TakesAMaybeBusyLockForBusyWhereItsHolderIsNoAttempt) {
  const auto maybe = [](const Holder& holder) {
    return of_holder(failed(Why::maybe_busy), holder);
  };
  AttemptFailure in_queue = failed(Why::maybe_busy);
  in_queue.queue.queued = true;
  AttemptFailure granted_some = in_queue;
  granted_some.granted_some = true;
  AttemptFailure offered = granted_some;
  offered.queue.offered = true;
  offered.queue.may_change = 1001ms;
  AttemptFailure slot_left = maybe(aged(3s, true));
  slot_left.granted_some = true;
  const WaitState not_joined{Queue::not_joined, Held{}};
  const WaitState queued{Queue::queued, Held{}};
  expect_rows({
      {"older than an attempt lasts", not_joined, maybe(aged(2s)), not_joined, 50ms, Why::busy},
      {"as old as an attempt",
       not_joined,
       maybe(aged(1s)),
       {Queue::not_joined, Split{start, 1}},
       10ms,
       Why::maybe_busy},
      {"an old shared lock with a slot left",
       not_joined,
       slot_left,
       {Queue::not_joined, Split{start, 1}},
       10ms,
       Why::maybe_busy},
      {"the holder notifies one in the queue", queued, in_queue, queued, 15s, Why::busy},
      {"but not of what it was granted itself",
       queued,
       granted_some,
       {Queue::queued, Split{start, 1}},
       10ms,
       Why::maybe_busy},
      {"a waiter before us was notified at a quorum", queued, offered, queued, 1003ms, Why::busy},
  });
}

TEST(WaitState, PollsWithoutNotifications) {
  const WaitState queued{Queue::queued, Held{}};
  Holder foreign;
  foreign.foreign = true;
  AttemptFailure no_publish_first = busy_behind(0);
  no_publish_first.queue.cannot_publish = true;
  AttemptFailure no_publish_second = busy_behind(1);
  no_publish_second.queue.cannot_publish = true;
  AttemptFailure granted_some = busy_behind(0, 0s);
  granted_some.granted_some = true;
  AttemptFailure slot_free = of_holder(busy_behind(0), aged(3s, true));
  slot_free.queue.slots = {2};
  expect_rows({
      {"the first, when the lease ends", queued, busy_behind(0, 3s), queued, 3s + expiry_slack,
       Why::busy},
      {"the second, a little later", queued, busy_behind(1, 3s), queued, 3250ms, Why::busy},
      {"the fifth, later yet", queued, busy_behind(4, 3s), queued, 12500ms, Why::busy},
      {"a foreign holder, the first", queued, of_holder(busy_behind(0), foreign), queued, 50ms,
       Why::busy},
      {"a foreign holder, the second", queued, of_holder(busy_behind(1), foreign), queued, 1500ms,
       Why::busy},
      {"a foreign holder, the third", queued, of_holder(busy_behind(2), foreign), queued, 15s,
       Why::busy},
      {"a holder that cannot publish, the first", queued, no_publish_first, queued, 50ms,
       Why::busy},
      {"a holder that cannot publish, the second", queued, no_publish_second, queued, 1500ms,
       Why::busy},
      {"no subscription", queued, busy_behind(3), queued, 50ms, Why::busy, Duration::max(), false},
      {"nearly free, but not ours", queued, granted_some, queued, 50ms, Why::busy},
      {"another slot is free", queued, slot_free, queued, 50ms, Why::busy},
  });
}

TEST(WaitState, WaitsForTheRestartGuardNoLongerThanItLasts) {
  AttemptFailure soon = failed(Why::guarded);
  soon.restarted = {{"a", 1s, 200ms}, {"b", 1s, 300ms}};
  const WaitState queued{Queue::queued, Held{}};
  const WaitState guarded{Queue::queued, Guarded{}};
  expect_rows({
      {"a poll", queued, failed(Why::guarded), guarded, 500ms, Why::guarded},
      {"its end", queued, soon, guarded, 200ms + expiry_slack, Why::guarded},
      {"another's lease is in the way, too", queued, of_holder(soon, {}), guarded, 50ms,
       Why::guarded},
  });
}

TEST(WaitState, LeavesAFullQueueAtOnceAndAContendedOneAfterASecond) {
  AttemptFailure full = busy_behind(3);
  full.queue.room = Room::none;
  AttemptFailure contended = busy_behind(0);
  contended.queue.room = Room::contended;
  const WaitState queued{Queue::queued, Held{}};
  const WaitState looking{Queue::queued, Held{}, start};
  const WaitState looked{Queue::queued, Held{}, start - 1s};
  expect_rows({
      {"full", queued, full, queued, std::nullopt, Why::queue_full},
      {"contended", queued, contended, looking, 25ms, Why::busy},
      {"contended for a second", looked, contended, looked, std::nullopt, Why::queue_full},
      {"contended, and the wait is over", queued, contended, queued, std::nullopt, Why::busy, 0s},
      {"not contended any more", looked, busy_behind(0, 1s), queued, 1s + expiry_slack, Why::busy},
  });
}

TEST(WaitState, GivesUpWhenTheWaitHasEnded) {
  const WaitState queued{Queue::queued, Held{}};
  const WaitState borne{Queue::away, Outage{start - 10s, 20}};
  expect_rows({
      {"busy", queued, busy_behind(0), queued, std::nullopt, Why::busy, 0s},
      {"guarded",
       queued,
       failed(Why::guarded),
       {Queue::queued, Guarded{}},
       std::nullopt,
       Why::guarded,
       0s},
      {"an outage",
       queued,
       failed(Why::unavailable),
       {Queue::queued, Outage{start, 0}},
       std::nullopt,
       Why::unavailable,
       0s},
      {"an outage that was borne for long enough", borne, failed(Why::unavailable), borne,
       std::nullopt, Why::unavailable},
      {"no right", queued, failed(Why::denied), queued, std::nullopt, Why::denied},
      {"a wrong setting", queued, failed(Why::misconfigured), queued, std::nullopt,
       Why::misconfigured},
      {"the same server twice", queued, failed(Why::duplicate), queued, std::nullopt,
       Why::duplicate},
      {"the user", queued, failed(Why::interrupted), queued, std::nullopt, Why::interrupted},
      {"a newer waiter", queued, failed(Why::superseded), queued, std::nullopt, Why::superseded},
      {"not before: the last attempt is at the end", queued, busy_behind(0), queued, 30ms,
       Why::busy, 30ms},
  });
}

TEST(WaitState, BearsARefusedLoginOnlyWhileThePasswordMayChangeAndAfterOthersWereAccepted) {
  WaitPolicy changing = policy;
  changing.password_may_change = true;
  const WaitContext context{start, Instant::max(), true, 1s};
  const auto retries = [&](Queue queue, const WaitPolicy& with) {
    const auto step = after_failure({queue, Held{}}, failed(Why::denied), with, context, no_bits);
    EXPECT_EQ(step.why, Why::denied);
    return step.try_at.has_value();
  };
  EXPECT_TRUE(retries(Queue::queued, changing));
  EXPECT_TRUE(retries(Queue::away, changing));
  EXPECT_FALSE(retries(Queue::not_joined, changing));
  EXPECT_FALSE(retries(Queue::joining, changing));
  EXPECT_FALSE(retries(Queue::queued, policy));
}

TEST(Later, StopsAtTheEndOfTime) {
  EXPECT_EQ(later(start, 1s), start + 1s);
  EXPECT_EQ(later(start, Duration::max()), no_end);
}

}  // namespace
}  // namespace redlock
