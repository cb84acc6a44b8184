#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "commands.hpp"

namespace {

// While it is set, prctl(PR_SET_PDEATHSIG) blocks in a forked process until the parent is dead.
bool slow_to_ask = false;

}  // namespace

/// Replaces the function of the C library.
extern "C" int prctl(int option, ...) {
  va_list arguments;
  va_start(arguments, option);
  const auto second = va_arg(arguments, unsigned long);
  const auto third = va_arg(arguments, unsigned long);
  const auto fourth = va_arg(arguments, unsigned long);
  const auto fifth = va_arg(arguments, unsigned long);
  va_end(arguments);
  if (slow_to_ask && option == PR_SET_PDEATHSIG) {
    for (const pid_t parent = ::getppid(); ::getppid() == parent;) ::usleep(1000);
  }
  return static_cast<int>(::syscall(SYS_prctl, option, second, third, fourth, fifth));
}

namespace redlock::guard {
namespace {

using namespace testing;

TEST(Spawn, CommandWhoseParentDiesBeforeItAsksForItsDeathNeverRuns) {
  Pipe output;
  const pid_t parent = forked([&] {
    slow_to_ask = true;
    const StdoutTo redirected(output);
    started(shell("echo it runs"));  // starts it; it runs on when we end
    return 0;
  });
  EXPECT_EQ(status_of(parent), 0);
  output.write_end.reset();
  EXPECT_EQ(output.read(), "");
}

}  // namespace
}  // namespace redlock::guard
