#include "proc/process_stat.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace redlock::proc {
namespace {

TEST(ProcessStatIn, FindsTheFieldsAfterAnyName) {
  const auto stat = process_stat_in(
      "4711 (a) Z 1 (b) S 7 4711 4711 34816 -1 4194560 1 2 3 4 5 6 7 8 20 0 3 0 1234567 8 9\n");
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->parent, 7);
  EXPECT_EQ(stat->terminal, 34816);
  EXPECT_EQ(stat->started, 1234567U);
  EXPECT_TRUE(stat->living);
  EXPECT_FALSE(process_stat_in("4711 (a) S 7 1").has_value());
  EXPECT_FALSE(process_stat_in("").has_value());
}

TEST(CpuTimeIn, TakesAllThreeNumbersOrNothing) {
  const CpuTime time = cpu_time_in("1500000 250000000 7\n");
  EXPECT_EQ(time.ran, std::chrono::microseconds(1500));
  EXPECT_EQ(time.waited, std::chrono::milliseconds(250));
  EXPECT_EQ(time.timeslices, 7);
  for (const char* not_such : {"1500000 250000000", "x 1 2", ""}) {
    const CpuTime none = cpu_time_in(not_such);
    EXPECT_EQ(none.ran + none.waited, Duration::zero()) << not_such;
    EXPECT_EQ(none.timeslices, 0) << not_such;
  }
}

TEST(PidsIn, LeavesOutEntriesThatAreNoProcess) {
  EXPECT_EQ(pids_in("4711 12\n13 \n"), (std::vector<pid_t>{4711, 12, 13}));
  EXPECT_EQ(pids_in("0 -1 x 99999999999 7x\n"), std::vector<pid_t>{});
}

TEST(ProcessesText, NamesTheFirstOfMany) {
  const pid_t self = ::getpid();
  const std::string one = process_name(self) + " " + std::to_string(self);
  EXPECT_EQ(processes_text({}), "");
  EXPECT_EQ(processes_text({self}), one);
  EXPECT_EQ(processes_text({self, self}), one + ", " + one);
  const std::string five = one + ", " + one + ", " + one + ", " + one + ", " + one;
  EXPECT_EQ(processes_text({self, self, self, self, self}), five);
  EXPECT_EQ(processes_text({self, self, self, self, self, self, self}), five + " and 2 more");
}

TEST(ProcessesText, ShowsANumberOfWhatHasEnded) {
  const pid_t ended = ::fork();
  if (ended == 0) ::_exit(0);
  ::waitpid(ended, nullptr, 0);
  EXPECT_EQ(processes_text({ended}), std::to_string(ended));
}

}  // namespace
}  // namespace redlock::proc
