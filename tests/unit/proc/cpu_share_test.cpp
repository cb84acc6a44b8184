#include "proc/cpu_share.hpp"

#include <sched.h>
#include <sys/resource.h>

#include "../in_child.hpp"

namespace redlock::proc {
namespace {

using namespace testing;

/// The real-time priority of a process after its guard has called lend_cpu_share(); 0: none.
int priority_after_loan(int policy, int priority) {
  const pid_t killed = forked([] { return ::pause(); });
  if (killed < 0) return -1;
  sched_param wanted{};
  wanted.sched_priority = priority;
  EXPECT_EQ(::sched_setscheduler(killed, policy, &wanted), 0);
  lend_cpu_share(killed);
  sched_param got{};
  EXPECT_EQ(::sched_getparam(killed, &got), 0);
  ::kill(killed, SIGKILL);
  status_of(killed);
  return got.sched_priority;
}

TEST(CpuShare, ARealTimeGuardLendsAPriorityBelowItsOwn) {
  in_child([] {
    EXPECT_FALSE(lends_real_time());
    sched_param own{};
    own.sched_priority = 2;
    const int theirs = own.sched_priority + 1;
    sched_param higher{};
    higher.sched_priority = theirs;
    if (::sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &higher) != 0 ||
        ::sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &own) != 0)
      GTEST_SKIP() << "no real-time priority for this user";
    EXPECT_TRUE(lends_real_time());
    EXPECT_EQ(priority_after_loan(SCHED_OTHER, 0), own.sched_priority - 1);
    EXPECT_EQ(priority_after_loan(SCHED_FIFO, theirs), theirs) << "one of its own stays as it is";
    EXPECT_EQ(priority_after_loan(SCHED_RR | SCHED_RESET_ON_FORK, theirs), theirs);
  });
}

TEST(CpuShare, AGuardSurvivesTheCpuTimeLimitOfTheCommand) {
  in_child([] {
    const rlimit commands{3600, 7200};
    ASSERT_EQ(::setrlimit(RLIMIT_CPU, &commands), 0);
    claim_cpu_share();
    rlimit ours{};
    ASSERT_EQ(::getrlimit(RLIMIT_CPU, &ours), 0);
    EXPECT_GE(ours.rlim_cur, commands.rlim_max);
  });
}

}  // namespace
}  // namespace redlock::proc
