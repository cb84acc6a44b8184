#include "guard/pid_namespace.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include "commands.hpp"
#include "guard/tree.hpp"

namespace redlock::guard {
namespace {

using namespace testing;

/// Runs `body` in a process of its own, with a pid namespace; skips the test where none can be
/// made.
void with_namespace(const std::function<void(PidNamespace&)>& body) {
  in_child([&] {
    if (const auto works = PidNamespace::check(); !works) GTEST_SKIP() << works.error();
    auto made = PidNamespace::create();
    ASSERT_TRUE(made) << made.error();
    body(*made);
  });
}

pid_t start_in(const PidNamespace& space, const std::string& script) {
  SpawnOptions options{environment_with({}), std::nullopt};
  options.pid_namespace = &space;
  const auto command = spawn(shell(script), options, InheritedSignals::capture());
  if (!command) ADD_FAILURE() << command.error().text;
  return command.value_or(-1);
}

TEST(PidNamespace, TheCommandIsOurChildAndHasAProcOfItsOwn) {
  with_namespace([](PidNamespace& space) {
    EXPECT_EQ(WEXITSTATUS(status_of(start_in(
                  space, "set /proc/[0-9]*; [ $# = 2 ] && [ $PPID = 0 ] && [ $$ = 2 ] && exit 7"))),
              7);
    EXPECT_NE(::access(("/proc/" + std::to_string(::getpid())).c_str(), F_OK), -1);
    EXPECT_EQ(status_of(forked([] { return 5; })), 5 << 8);  // our other children are outside
    space.end();
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  });
}

TEST(PidNamespace, VariablesThatNamedTheFrontProcessHaveTheInnerPid) {
  with_namespace([](PidNamespace& space) {
    const pid_t front = ::getpid();
    SpawnOptions options{{"LISTEN_PID=" + std::to_string(front)}, std::nullopt};
    options.pid_namespace = &space;
    options.front = front;
    const auto command = spawn(shell("[ $$ = 2 ] && [ \"$LISTEN_PID\" = 2 ] && exit 7"), options,
                               InheritedSignals::capture());
    ASSERT_TRUE(command);
    EXPECT_EQ(WEXITSTATUS(status_of(*command)), 7);
    space.end();
  });
}

TEST(PidNamespace, TheEndOfItsInitEndsAllProcesses) {
  with_namespace([](PidNamespace& space) {
    const pid_t command = start_in(space, "(setsid sleep 1000 &) ; exec sleep 1000");
    ::kill(space.init(), SIGTERM);
    ::kill(space.init(), SIGSTOP);
    EXPECT_EQ(::waitpid(command, nullptr, WNOHANG), 0);
    ::kill(space.init(), SIGKILL);
    EXPECT_EQ(WTERMSIG(status_of(command)), SIGKILL);
    EXPECT_EQ(WTERMSIG(status_of(space.init())), SIGKILL);
  });
}

TEST(PidNamespace, TheTreeSignalsAllButInitAndKillsInitToo) {
  in_child([] {
    if (const auto works = PidNamespace::check(); !works) GTEST_SKIP() << works.error();
    CommandTarget none;
    ProcessTree tree(none);
    auto space = PidNamespace::create();
    ASSERT_TRUE(space);
    tree.add_guard(space->init());
    EXPECT_TRUE(tree.descendants().empty());
    const pid_t command = start_in(*space, "(setsid sleep 1000 &) ; exec sleep 1000");
    EXPECT_TRUE(eventually([&] { return tree.descendants().size() == 2; }));
    EXPECT_TRUE(eventually([&] { return tree.kill_and_reap(Instant::max()); }));
    bool saw_command = false;
    while (const auto ended = tree.reap()) saw_command |= ended->pid == command;
    EXPECT_TRUE(saw_command);
  });
}

TEST(PidNamespace, EndsWithItsMaker) {
  in_child([] {
    if (const auto works = PidNamespace::check(); !works) GTEST_SKIP() << works.error();
    CommandTarget none;
    ProcessTree tree(none);
    Pipe pids;
    const pid_t maker = forked([&] {
      auto space = PidNamespace::create();
      ::kill(space->init(), SIGSTOP);
      start_in(*space, "setsid sleep 1000 & sleep 1000");
      EXPECT_EQ(::write(pids.write_end.get(), "x", 1), 1);
      return ::pause();
    });
    EXPECT_EQ(pids.read(1), "x");
    ::kill(maker, SIGKILL);
    // They are reparented to us, dead.
    EXPECT_TRUE(eventually([&] {
      while (tree.reap()) {
      }
      return tree.descendants().empty() && ::waitpid(-1, nullptr, WNOHANG | __WALL) < 0;
    }));
  });
}

TEST(PidNamespace, WithoutPrivilegesTheErrorNamesCauseAndRemedy) {
  in_child([] {
    become_ordinary();
    const auto works = PidNamespace::check();
    ASSERT_FALSE(works);
    EXPECT_EQ(works.error(),
              "cannot make a pid namespace: operation not permitted; run it as root, in a "
              "container with CAP_SYS_ADMIN");
  });
}

}  // namespace
}  // namespace redlock::guard
