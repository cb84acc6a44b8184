#include "tools/reaper.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include "../in_child.hpp"

namespace redlock::guard {
namespace {

using namespace testing;
using redlock::testing::Leftovers;
using redlock::testing::run_and_reap;
using std::chrono::seconds;

constexpr seconds no_limit{0};

/// The result of run_and_reap() in a process of its own, with stderr discarded.
int outcome_of(const std::function<int()>& body, seconds limit, Leftovers leftovers) {
  return WEXITSTATUS(status_of(forked([&] {
    const UniqueFd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    ::dup2(null.get(), STDERR_FILENO);
    return run_and_reap(body, limit, leftovers);
  })));
}

/// Leaves a daemon behind that ignores all signals that can be ignored. A line in the pipe shows
/// that it runs, end of file that it has ended.
void leave_daemon(Pipe& pipe) {
  if (::fork() == 0) {
    ::setsid();
    if (::fork() != 0) ::_exit(0);
    for (const int signal : {SIGHUP, SIGINT, SIGTERM}) ::signal(signal, SIG_IGN);
    EXPECT_EQ(::write(pipe.write_end.get(), "up\n", 3), 3);
    for (;;) ::pause();
  }
  EXPECT_EQ(pipe.read_line(), "up");
}

TEST(Reaper, ReturnsWhatTheBodyReturns) {
  EXPECT_EQ(outcome_of([] { return 0; }, no_limit, Leftovers::failure), 0);
  EXPECT_EQ(outcome_of([] { return 7; }, no_limit, Leftovers::failure), 7);
  EXPECT_EQ(outcome_of([] { return ::raise(SIGKILL); }, no_limit, Leftovers::failure),
            128 + SIGKILL);
}

TEST(Reaper, ADaemonThatIsLeftIsKilledAndAFailure) {
  Pipe pipe;
  EXPECT_EQ(outcome_of(
                [&] {
                  leave_daemon(pipe);
                  return 0;
                },
                no_limit, Leftovers::failure),
            1);
  pipe.write_end.reset();
  EXPECT_EQ(pipe.read(), "");
}

TEST(Reaper, AnExpectedDaemonIsKilledAndNoFailure) {
  Pipe pipe;
  EXPECT_EQ(outcome_of(
                [&] {
                  leave_daemon(pipe);
                  return 0;
                },
                no_limit, Leftovers::expected),
            0);
  pipe.write_end.reset();
  EXPECT_EQ(pipe.read(), "");
}

TEST(Reaper, ABodyThatDiesLeavesNoProcess) {
  Pipe pipe;
  EXPECT_EQ(outcome_of(
                [&] {
                  leave_daemon(pipe);
                  return ::raise(SIGKILL);
                },
                no_limit, Leftovers::failure),
            128 + SIGKILL);
  pipe.write_end.reset();
  EXPECT_EQ(pipe.read(), "");
}

TEST(Reaper, ABodyThatHangsIsKilledWithItsDescendants) {
  Pipe pipe;
  EXPECT_EQ(outcome_of(
                [&] {
                  leave_daemon(pipe);
                  return ::pause();
                },
                seconds(5), Leftovers::failure),
            124);
  pipe.write_end.reset();
  EXPECT_EQ(pipe.read(), "");
}

TEST(Reaper, ASignalToItLeavesNoProcess) {
  Pipe pipe;
  Pipe ready;
  const pid_t reaper = forked([&] {
    return run_and_reap(
        [&] {
          leave_daemon(pipe);
          EXPECT_EQ(::write(ready.write_end.get(), "x", 1), 1);
          return ::pause();
        },
        no_limit, Leftovers::failure);
  });
  EXPECT_EQ(ready.read(1), "x");
  ::kill(reaper, SIGTERM);
  EXPECT_EQ(WEXITSTATUS(status_of(reaper)), 128 + SIGTERM);
  pipe.write_end.reset();
  EXPECT_EQ(pipe.read(), "");
}

}  // namespace
}  // namespace redlock::guard
