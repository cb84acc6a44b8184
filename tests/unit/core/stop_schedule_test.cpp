#include "core/stop_schedule.hpp"

#include <gtest/gtest.h>

#include <cctype>
#include <sstream>
#include <string>
#include <vector>

namespace redlock {
namespace {

using namespace std::chrono_literals;
using Guard = StopSchedule::Guard;

/// Leases of 20 s: the stop signal is due at 13 s, KILL at 16 s; for the second guard a second
/// later.
constexpr Duration lease_length = 20s;
constexpr StopPlan plan{.grace = 3s, .margin = 4s, .max_margin = 8s};

StopPlan with(OnLost on_lost) {
  StopPlan changed = plan;
  changed.on_lost = on_lost;
  return changed;
}

StopPlan at_most(Duration max_hold, OnLost on_lost = OnLost::kill) {
  StopPlan changed = with(on_lost);
  changed.max_hold = max_hold;
  return changed;
}

Instant at(int second) {
  return Instant() + 1h + std::chrono::seconds(second);
}

/// Applies one event: `r` the lease is renewed, `l` it is lost, `a` we are asked to stop, `p` the
/// process that started us ended, `g` another guard was killed, `e` the command has ended and its
/// descendants must, `c` the command has ended, `s` the other guard has sent the stop signal, `k`
/// the other guard makes progress in killing, `m` the margin must be 6 s, `M` a minute.
void apply(StopSchedule& schedule, char event, Instant now) {
  switch (event) {
    case 'r':
      return schedule.renew(now + lease_length);
    case 'l':
      return schedule.lose();
    case 'a':
      return schedule.ask(StopReason::request);
    case 'p':
      return schedule.ask(StopReason::parent_gone);
    case 'g':
      return schedule.kill_at_once(StopReason::front_killed);
    case 'e':
      return schedule.end_rest();
    case 'c':
      return schedule.command_has_ended();
    case 's':
      return schedule.other_has_signalled();
    case 'k':
      return schedule.set_progress_of_other(now);
    case 'm':
      return schedule.need_margin(6s);
    case 'M':
      return schedule.need_margin(1min);
    default:
      FAIL() << event;
  }
}

/// What a guard does under a lease that begins at second 0, up to its first KILL. `events`: words
/// of a second and letters, such as `6r 12al`. Returns words of a second, an action, and its reason
/// unless that is the one before.
std::string course(const std::string& events, const StopPlan& of = plan,
                   Guard guard = Guard::first) {
  std::vector<std::string> letters(61);
  std::istringstream words(events);
  for (std::size_t second = 0; words >> second;) words >> letters.at(second);

  StopSchedule schedule(of, guard);
  schedule.arm(at(0) + lease_length, at(0));
  std::ostringstream course;
  std::optional<StopReason> last_reason;
  for (int second = 0; second < static_cast<int>(letters.size()); ++second) {
    for (const char event : letters[static_cast<std::size_t>(second)])
      apply(schedule, event, at(second));

    for (;;) {
      const StopStep step = schedule.step(at(second));
      if (step.action == StopAction::wait) {
        EXPECT_GT(step.next, at(second)) << "it would not sleep";
        break;
      }
      course << (course.tellp() > 0 ? ", " : "") << second << " " << word_of(step.action);
      if (step.why && step.why != last_reason) course << " " << word_of(*step.why);
      last_reason = step.why;
      if (step.action == StopAction::kill && guard == Guard::first) return course.str();
      if (step.action == StopAction::replace) return course.str();
      if (step.action == StopAction::kill) schedule.after_pass(at(second), at(second), false);
    }
  }
  return course.str();
}

TEST(StopSchedule, StopsAGraceAndAMarginBeforeTheDeadline) {
  EXPECT_EQ(course(""), "13 terminate lost, 16 kill");
}

TEST(StopSchedule, ARenewalMovesTheStop) {
  EXPECT_EQ(course("5r"), "18 terminate lost, 21 kill");
  EXPECT_EQ(course("5r 11r 12r"), "25 terminate lost, 28 kill");
}

TEST(StopSchedule, ARenewalDoesNotRevokeAStopNorItsKill) {
  EXPECT_EQ(course("14r"), "13 terminate lost, 16 kill");
}

TEST(StopSchedule, ALostLeaseStopsAtOnce) {
  EXPECT_EQ(course("4l"), "4 terminate lost, 7 kill");
  EXPECT_EQ(course("4l 5r 6r"), "4 terminate lost, 7 kill");
}

TEST(StopSchedule, TheRestIsStoppedAfterTheCommandIfThePlanSaysSo) {
  StopPlan alone = plan;
  alone.grace = 4s;
  alone.signal_to = SignalTo::command;
  EXPECT_EQ(course("", alone), "12 terminate lost, 14 terminate_rest, 16 kill");
  EXPECT_EQ(course("13c", alone), "12 terminate lost, 13 terminate_rest, 16 kill");
  EXPECT_EQ(course("4a 15c", alone), "4 terminate request, 6 terminate_rest, 8 kill");
  EXPECT_EQ(course("4e", alone), "4 terminate, 8 kill") << "the command has ended before";
  EXPECT_EQ(course("4c 6a", alone), "6 terminate request, 10 kill") << "likewise";
  EXPECT_EQ(course("4g", alone), "4 kill front_killed");
  EXPECT_EQ(course("", alone, Guard::second), "13 terminate lost, 17 kill, 18 replace");
  alone.on_lost = OnLost::term;
  EXPECT_EQ(course("4l", alone), "4 terminate lost, 6 terminate_rest");
}

TEST(StopSchedule, ARequestStopsAtOnceAndTheFirstCounts) {
  EXPECT_EQ(course("4a"), "4 terminate request, 7 kill");
  EXPECT_EQ(course("4ap 5p"), "4 terminate request, 7 kill");
  EXPECT_EQ(course("4p 5a"), "4 terminate parent_gone, 7 kill");
  EXPECT_EQ(course("14a"), "13 terminate lost, 16 kill");
}

TEST(StopSchedule, ALossBeforeTheStopIsTheReasonAndOneAfterItIsNot) {
  EXPECT_EQ(course("4al"), "4 terminate lost, 7 kill");
  EXPECT_EQ(course("4a 5l"), "4 terminate request, 7 kill");
}

TEST(StopSchedule, TheGraceEndsNoLaterThanTheMarginBegins) {
  EXPECT_EQ(course("12a"), "12 terminate request, 15 kill");
  EXPECT_EQ(course("12am"), "12 terminate request, 14 kill");
  EXPECT_EQ(course("", at_most(12s)), "12 terminate max_hold, 15 kill");
}

TEST(StopSchedule, TheMarginMovesAllUpToItsMaximum) {
  EXPECT_EQ(course("3m"), "11 terminate lost, 14 kill");
  EXPECT_EQ(course("3M"), "9 terminate lost, 12 kill");
  EXPECT_EQ(course("13m"), "13 terminate lost, 14 kill");
}

TEST(StopSchedule, MaxHoldStopsUnlessTheLeaseEndsFirst) {
  EXPECT_EQ(course("", at_most(5s)), "5 terminate max_hold, 8 kill");
  EXPECT_EQ(course("9r", at_most(18s)), "18 terminate max_hold, 21 kill");
  EXPECT_EQ(course("", at_most(14s)), "13 terminate lost, 16 kill");
}

TEST(StopSchedule, WithTermNothingIsKilledForTheLease) {
  EXPECT_EQ(course("", with(OnLost::term)), "13 terminate lost");
  EXPECT_EQ(course("4l", with(OnLost::term)), "4 terminate lost");
}

TEST(StopSchedule, WithWarnOnlyALossIsReported) {
  EXPECT_EQ(course("", with(OnLost::warn)), "");
  EXPECT_EQ(course("19r", with(OnLost::warn)), "") << "the lease survived";
  EXPECT_EQ(course("20l", with(OnLost::warn)), "20 warn lost");
  EXPECT_EQ(course("", with(OnLost::warn), Guard::second), "");
}

TEST(StopSchedule, WhatKeepsTheLeaseKillsWhateverOnLostSays) {
  for (const OnLost on_lost : {OnLost::kill, OnLost::term, OnLost::warn}) {
    EXPECT_EQ(course("4a", with(on_lost)), "4 terminate request, 7 kill");
    EXPECT_EQ(course("", at_most(5s, on_lost)), "5 terminate max_hold, 8 kill");
    EXPECT_EQ(course("4g", with(on_lost)), "4 kill front_killed");
  }
}

TEST(StopSchedule, WithoutAnotherGuardAllIsKilledAtOnce) {
  EXPECT_EQ(course("4g"), "4 kill front_killed");
  EXPECT_EQ(course("4a 5g"), "4 terminate request, 5 kill");
  EXPECT_EQ(course("4lg"), "4 kill lost");
}

TEST(StopSchedule, WhatTheCommandLeftGetsTheSameGrace) {
  EXPECT_EQ(course("4e"), "4 terminate, 7 kill");
  EXPECT_EQ(course("4e 5l"), "4 terminate, 7 kill lost");
  EXPECT_EQ(course("12e", with(OnLost::warn)), "12 terminate, 15 kill");
}

TEST(StopSchedule, AStopThatTheOtherGuardBeganIsJoined) {
  EXPECT_EQ(course("10s"), "10 join lost, 13 kill");
  EXPECT_EQ(course("10s", with(OnLost::term)), "10 join lost");
}

TEST(StopSchedule, TheSecondGuardActsAQuarterOfTheMarginLater) {
  EXPECT_EQ(course("", plan, Guard::second), "14 terminate lost, 17 kill, 18 replace");
  EXPECT_EQ(course("", with(OnLost::term), Guard::second), "14 terminate lost");
}

TEST(StopSchedule, TheSecondGuardKillsForTheLeaseAlone) {
  EXPECT_EQ(course("4s", plan, Guard::second), "4 join lost, 17 kill, 18 replace");
  EXPECT_EQ(course("4s 10r", plan, Guard::second), "4 join lost, 27 kill, 28 replace");
  EXPECT_EQ(course("4s", with(OnLost::term), Guard::second), "4 join lost");
}

TEST(StopSchedule, AFirstGuardThatMakesProgressIsNotReplaced) {
  EXPECT_EQ(course("16k", plan, Guard::second), "14 terminate lost, 17 kill, 18 replace")
      << "its progress is older than our turn";
  EXPECT_EQ(course("17k 18k 19k", plan, Guard::second), "14 terminate lost, 20 kill, 21 replace");
}

TEST(StopSchedule, TheSecondGuardLooksAgainWhileTheMarginMayGrow) {
  const StopSchedule schedule = [] {
    StopSchedule second(plan, Guard::second);
    second.set_deadline(at(100));
    return second;
  }();
  EXPECT_EQ(schedule.next(at(0)), at(94) - 4s) << "for the largest margin";
  EXPECT_EQ(schedule.next(at(92)), at(92) + 250ms);
  EXPECT_EQ(StopSchedule(plan, Guard::second).next(at(0)), Instant::max());
}

TEST(StopSchedule, KillingIsGivenUpAfterTheDeadlineAndNoProgress) {
  StopSchedule schedule(plan);
  schedule.arm(at(20), at(0));
  schedule.begin_killing(at(16));
  const auto after = [&schedule](Instant now, bool progress) {
    return schedule.after_pass(now, now, progress).action;
  };
  EXPECT_EQ(after(at(17), false), StopAction::kill);
  EXPECT_EQ(after(at(20) + death_timeout - 1ms, false), StopAction::kill);
  EXPECT_EQ(after(at(20) + death_timeout, true), StopAction::kill);
  EXPECT_EQ(after(at(20) + 2 * death_timeout - 1ms, false), StopAction::kill);
  EXPECT_EQ(after(at(20) + 2 * death_timeout, false), StopAction::give_up);
}

TEST(StopSchedule, WithoutALeaseKillingIsGivenUpWithoutProgress) {
  StopSchedule schedule(plan);
  schedule.begin_killing(at(5));
  EXPECT_EQ(schedule.after_pass(at(5), at(5), false).action, StopAction::kill);
  EXPECT_EQ(schedule.after_pass(at(5), at(5) + death_timeout, false).action, StopAction::give_up);
}

TEST(StopSchedule, PausesBetweenPassesForAsLongAsOneTook) {
  StopSchedule schedule(plan);
  schedule.arm(at(20), at(0));
  const auto pause_after = [&schedule](Duration length) {
    return schedule.after_pass(at(1), at(1) + length, true).next - (at(1) + length);
  };
  EXPECT_EQ(pause_after(1ms), kill_interval);
  EXPECT_EQ(pause_after(10ms), 10ms);
  EXPECT_EQ(pause_after(10s), 500ms) << "an eighth of the margin";
}

TEST(StopSchedule, LeavesTimeToStartMoreThanAGraceBeforeTheMargin) {
  StopSchedule schedule(with(OnLost::warn));
  schedule.arm(at(20), at(0));
  EXPECT_TRUE(schedule.leaves_time(at(13) - 1ms));
  EXPECT_FALSE(schedule.leaves_time(at(13)));
}

TEST(StopSchedule, IsLateAfterTheDeadlineUnlessTheCommandMayOutliveItsLease) {
  const auto is_late = [](const std::string& events, OnLost on_lost) {
    StopSchedule schedule(with(on_lost));
    schedule.arm(at(20), at(0));
    for (const char event : events) apply(schedule, event, at(1));
    (void)schedule.step(at(1));
    EXPECT_EQ(schedule.late_by(at(20)), Duration::zero());
    return schedule.late_by(at(21)) == 1s;
  };
  EXPECT_FALSE(is_late("", OnLost::kill));
  EXPECT_TRUE(is_late("l", OnLost::kill));
  EXPECT_FALSE(is_late("l", OnLost::term));
  EXPECT_FALSE(is_late("l", OnLost::warn));
  EXPECT_TRUE(is_late("a", OnLost::warn));
}

}  // namespace
}  // namespace redlock
