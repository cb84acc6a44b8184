#include "guard/command.hpp"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>

#include <array>

#include "commands.hpp"

namespace redlock::guard {
namespace {

using namespace testing;

int exit_code_of_find(const std::string& name) {
  const auto found = find_program(name);
  return found ? 0 : to_int(found.error().exit_code);
}

ExecFailure failed_spawn(const Command& command) {
  const auto child =
      spawn(command, {environment_with({}), ::getpgrp()}, InheritedSignals::capture());
  EXPECT_FALSE(child) << "it started";
  return child ? ExecFailure{ExitCode::done, ""} : child.error();
}

TEST(FindProgram, FindsAlongPath) {
  in_child([] {
    const Directory first;
    const Directory second;
    const std::string tool = second.file("tool", "", 0755);
    ::setenv("PATH", (first.path() + ":" + second.path()).c_str(), 1);
    EXPECT_EQ(find_program("tool").value_or(""), tool);
  });
}

TEST(FindProgram, SkipsFilesThatCannotBeExecutedForALaterMatch) {
  in_child([] {
    const Directory first;
    const Directory second;
    [[maybe_unused]] const std::string plain = first.file("tool", "", 0644);
    const std::string tool = second.file("tool", "", 0755);
    ::setenv("PATH", (first.path() + ":" + second.path()).c_str(), 1);
    EXPECT_EQ(find_program("tool").value_or(""), tool);
  });
}

TEST(FindProgram, EmptyElementOfPathIsTheCurrentDirectory) {
  in_child([] {
    const Directory directory;
    [[maybe_unused]] const std::string tool = directory.file("tool", "", 0755);
    ASSERT_EQ(::chdir(directory.path().c_str()), 0);
    for (const char* path : {"", ":/nowhere", "/nowhere:", "/nowhere::/nowhere"}) {
      ::setenv("PATH", path, 1);
      EXPECT_EQ(find_program("tool").value_or(""), "./tool") << path;
    }
    ::setenv("PATH", "/nowhere", 1);
    EXPECT_EQ(exit_code_of_find("tool"), 127);
  });
}

TEST(FindProgram, UnsetPathMeansTheSystemsDirectories) {
  in_child([] {
    ::unsetenv("PATH");
    EXPECT_EQ(find_program("sh").value_or(""), "/bin/sh");
    EXPECT_EQ(exit_code_of_find("no-such-program"), 127);
  });
}

TEST(FindProgram, NameWithSlashIsNotLookedUp) {
  const Directory directory;
  const std::string tool = directory.file("tool", "", 0755);
  EXPECT_EQ(find_program(tool).value_or(""), tool);
  EXPECT_EQ(exit_code_of_find(directory.path() + "/nothing"), 127);
  EXPECT_EQ(exit_code_of_find(tool + "/below"), 127);
}

TEST(FindProgram, NotFoundIs127) {
  EXPECT_EQ(exit_code_of_find("no-such-program"), 127);
  EXPECT_EQ(exit_code_of_find(""), 127);
  EXPECT_EQ(exit_code_of_find(std::string(300, 'x')), 127);
}

TEST(FindProgram, FoundButUnusableIs126) {
  in_child([] {
    const Directory directory;
    const std::string plain = directory.file("plain", "", 0644);
    std::filesystem::create_directory(directory.path() + "/sub");
    ::setenv("PATH", ("/nowhere:" + directory.path()).c_str(), 1);
    for (const std::string& name : {plain, std::string("plain"), directory.path() + "/sub",
                                    std::string("sub"), std::string("/dev/null")}) {
      EXPECT_EQ(exit_code_of_find(name), 126) << name;
    }
    EXPECT_EQ(find_program("plain").error().text, "plain: permission denied");
    EXPECT_EQ(find_program("sub").error().text, "sub: is a directory");
  });
}

TEST(FindProgram, UnsearchableDirectoryInPathIsNoMatch) {
  in_child([] {
    become_ordinary();
    const Directory closed;
    [[maybe_unused]] const std::string tool = closed.file("tool", "", 0755);
    ASSERT_EQ(::chmod(closed.path().c_str(), 0), 0);
    ::setenv("PATH", closed.path().c_str(), 1);
    EXPECT_EQ(exit_code_of_find("tool"), 127);
    EXPECT_EQ(exit_code_of_find(closed.path() + "/tool"), 126);
    ::chmod(closed.path().c_str(), 0700);
  });
}

TEST(FindProgram, NameIsEscapedForTheTerminal) {
  EXPECT_EQ(find_program("a\x1b[2Jb").error().text, "a\\x1b[2Jb: not found");
}

TEST(EnvironmentWith, ReplacesAndAppendsOurs) {
  in_child([] {
    static std::array<char*, 4> inherited{const_cast<char*>("A=1"), const_cast<char*>("KEY=old"),
                                          const_cast<char*>("KEYS=2"), nullptr};
    environ = inherited.data();
    EXPECT_EQ(environment_with({{"KEY", "new"}, {"OTHER", ""}}),
              (std::vector<std::string>{"A=1", "KEYS=2", "KEY=new", "OTHER="}));
  });
}

TEST(EnvironmentWith, PassesOddEntriesUntouchedAndInOrder) {
  in_child([] {
    static std::array<char*, 8> odd{const_cast<char*>("Z=1"),
                                    const_cast<char*>("no-value"),
                                    const_cast<char*>("=empty name"),
                                    const_cast<char*>("Z=again"),
                                    const_cast<char*>(""),
                                    const_cast<char*>("KEY"),
                                    const_cast<char*>("b\n=\xff"),
                                    nullptr};
    environ = odd.data();
    EXPECT_EQ(environment_with({{"KEY", "x"}}),
              (std::vector<std::string>{"Z=1", "no-value", "=empty name", "Z=again", "", "KEY",
                                        "b\n=\xff", "KEY=x"}));
  });
}

TEST(EnvironmentWith, ClearedEnvironment) {
  in_child([] {
    ::clearenv();
    EXPECT_EQ(environment_with({{"KEY", "x"}}), (std::vector<std::string>{"KEY=x"}));
  });
}

TEST(Spawn, ArgumentsArriveUntouched) {
  in_child([] {
    const Command command{
        "/bin/sh",
        {"odd name", "-c", "cat /proc/$$/cmdline; :", "", "a\nb", " c ", "-x", "\xff", "*"}};
    std::string expected;
    for (const auto& argument : command.arguments) expected += argument + '\0';
    EXPECT_EQ(output_of(command), expected);
  });
}

TEST(Spawn, EnvironmentIsTheGivenOne) {
  in_child([] {
    Pipe pipe;
    pid_t child = -1;
    {
      const StdoutTo redirected(pipe);
      child = spawn({"/bin/cat", {"cat", "/proc/self/environ"}},
                    {{"B=2", "odd", "A=1"}, ::getpgrp()}, InheritedSignals::capture())
                  .value_or(-1);
    }
    pipe.write_end.reset();
    EXPECT_EQ(pipe.read(), std::string("B=2\0odd\0A=1\0", 12));
    EXPECT_EQ(status_of(child), 0);
  });
}

TEST(Spawn, ExitStatusIsTheCommandsOwn) {
  in_child([] {
    EXPECT_EQ(WEXITSTATUS(status_of(started(shell("exit 126")))), 126);
    EXPECT_EQ(WTERMSIG(status_of(started(shell("kill -TERM $$")))), SIGTERM);
  });
}

TEST(Spawn, GroupIsOursOrItsOwn) {
  in_child([] {
    const pid_t ours = started(shell("read line"), InheritedSignals::capture(), false);
    EXPECT_EQ(::getpgid(ours), ::getpgrp());
    ::kill(ours, SIGKILL);
    status_of(ours);
    const pid_t own = started(shell("exec sleep 60"), InheritedSignals::capture(), true);
    EXPECT_NE(::getpgid(own), ::getpgrp());
    EXPECT_NE(::getpgid(own), own) << "a leader's setsid(1) forks";
    ::kill(own, SIGKILL);
    status_of(own);
  });
}

TEST(Spawn, InheritedDescriptorsPassAndOursDoNot) {
  in_child([] {
    const UniqueFd inherited(::fcntl(0, F_DUPFD, 40));
    const UniqueFd ours(::fcntl(0, F_DUPFD_CLOEXEC, 50));
    const int passed = inherited.get();
    const int kept = ours.get();
    const std::string listing = output_of(shell("ls /proc/$$/fd; :"));
    EXPECT_NE(listing.find(std::to_string(passed) + "\n"), std::string::npos) << listing;
    EXPECT_EQ(listing.find(std::to_string(kept) + "\n"), std::string::npos) << listing;
  });
}

TEST(Spawn, ClosedStandardDescriptorsStayClosed) {
  in_child([] {
    std::array<UniqueFd, 3> saved;
    for (int fd = 0; fd < 3; ++fd) {
      saved.at(static_cast<std::size_t>(fd)).reset(::fcntl(fd, F_DUPFD_CLOEXEC, 60));
      ::close(fd);
    }
    const auto child =
        spawn(shell("for n in 0 1 2; do test -e /proc/$$/fd/$n && exit 1; done; exit 0"),
              {environment_with({}), ::getpgrp()}, InheritedSignals::capture());
    const auto missing =
        spawn({"/nowhere/tool", {"tool"}}, {{}, ::getpgrp()}, InheritedSignals::capture());
    for (int fd = 0; fd < 3; ++fd) ::dup2(saved.at(static_cast<std::size_t>(fd)).get(), fd);
    ASSERT_TRUE(child);
    EXPECT_EQ(status_of(*child), 0);
    EXPECT_FALSE(missing);
  });
}

TEST(Spawn, FailedExecIsReportedAndLeavesNoChild) {
  in_child([] {
    const Directory directory;
    const auto missing = failed_spawn({directory.path() + "/nothing", {"nothing"}});
    EXPECT_EQ(missing.exit_code, ExitCode::not_found);
    EXPECT_EQ(missing.text, directory.path() + "/nothing: not found");
    const auto plain = failed_spawn({directory.file("plain", "", 0644), {"plain"}});
    EXPECT_EQ(plain.exit_code, ExitCode::not_executable);
    EXPECT_EQ(plain.text, directory.path() + "/plain: permission denied");
    EXPECT_EQ(failed_spawn({directory.path(), {"directory"}}).exit_code, ExitCode::not_executable);
    EXPECT_EQ(::waitpid(-1, nullptr, 0), -1);
    EXPECT_EQ(errno, ECHILD);
  });
}

TEST(Spawn, MissingInterpreterIs126AndIsNamed) {
  in_child([] {
    const Directory directory;
    const auto failure =
        failed_spawn({directory.file("script", "#!/nowhere/interpreter\n", 0755), {"script"}});
    EXPECT_EQ(failure.exit_code, ExitCode::not_executable);
    EXPECT_EQ(failure.text, directory.path() + "/script: its interpreter is missing");
  });
}

TEST(Spawn, TooLongArgumentIs126) {
  in_child([] {
    const auto failure = failed_spawn({"/bin/sh", {"sh", std::string(1 << 20, 'x')}});
    EXPECT_EQ(failure.exit_code, ExitCode::not_executable);
    EXPECT_EQ(failure.text, "/bin/sh: argument list too long");
  });
}

TEST(Spawn, ScriptWithoutInterpreterLineRunsUnderTheShell) {
  in_child([] {
    const Directory directory;
    const std::string script = directory.file("script", "printf '%s|' \"$0\" \"$@\"\n", 0755);
    EXPECT_EQ(output_of({script, {"ignored", "", "a b"}}), script + "||a b|");
  });
}

TEST(Spawn, ScriptNamedLikeAnOptionRunsToo) {
  in_child([] {
    const Directory directory;
    std::filesystem::create_directory(directory.path() + "/-d");
    [[maybe_unused]] const std::string script = directory.file("-d/script", "echo ran\n", 0755);
    ASSERT_EQ(::chdir(directory.path().c_str()), 0);
    EXPECT_EQ(output_of({"-d/script", {"script"}}), "ran\n");
  });
}

TEST(Spawn, NoMoreProcessesIs71) {
  in_child([] {
    become_ordinary();
    const rlimit none{0, 0};
    ASSERT_EQ(::setrlimit(RLIMIT_NPROC, &none), 0);
    const auto failure = failed_spawn(shell("exit 0"));
    EXPECT_EQ(failure.exit_code, ExitCode::os_error);
    EXPECT_EQ(failure.text, "/bin/sh: cannot fork: resource temporarily unavailable");
  });
}

TEST(Spawn, NoMoreDescriptorsIs71) {
  in_child([] {
    const rlimit few{3, 3};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    EXPECT_EQ(failed_spawn(shell("exit 0")).exit_code, ExitCode::os_error);
  });
}

TEST(Spawn, CommandDiesWithItsParent) {
  in_child([] {
    Pipe output;
    Pipe ready;
    const pid_t parent = forked([&] {
      const StdoutTo redirected(output);
      started({"/bin/sleep", {"sleep", "1000"}}, InheritedSignals::capture(), true);
      EXPECT_EQ(::write(ready.write_end.get(), "x", 1), 1);
      return ::pause();
    });
    output.write_end.reset();
    EXPECT_EQ(ready.read(1), "x");
    ::kill(parent, SIGKILL);
    status_of(parent);
    EXPECT_EQ(output.read(), "");  // returns when the last process that has its stdout ends
  });
}

TEST(Spawn, DoesNotWaitForAChildThatIsStoppedBeforeItsExec) {
  in_child([] {
    Pipe result;
    Pipe go;
    const pid_t spawner = forked([&] {
      EXPECT_EQ(go.read(1), "x");
      const auto child =
          spawn({"/nowhere/tool", {"tool"}}, {{}, ::getpgrp()}, InheritedSignals::capture());
      EXPECT_EQ(::write(result.write_end.get(), child ? "s" : "f", 1), 1);
      return child ? WEXITSTATUS(status_of(*child)) : 0;
    });
    // A tracer that asks for forks holds the new child at its first instruction.
    if (::ptrace(PTRACE_SEIZE, spawner, nullptr, PTRACE_O_TRACEFORK) != 0) {
      ::kill(spawner, SIGKILL);
      status_of(spawner);
      GTEST_SKIP() << "no ptrace here";
    }
    ASSERT_EQ(::write(go.write_end.get(), "x", 1), 1);
    ASSERT_TRUE(WIFSTOPPED(status_of(spawner)));
    unsigned long child = 0;
    ASSERT_EQ(::ptrace(PTRACE_GETEVENTMSG, spawner, nullptr, &child), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(static_cast<pid_t>(child), &status, __WALL), static_cast<pid_t>(child));
    ASSERT_EQ(::ptrace(PTRACE_DETACH, spawner, nullptr, nullptr), 0);
    EXPECT_EQ(result.read(1), "s");
    ASSERT_EQ(::ptrace(PTRACE_DETACH, static_cast<pid_t>(child), nullptr, nullptr), 0);
    EXPECT_EQ(WEXITSTATUS(status_of(spawner)), 127);
  });
}

TEST(Command, IsInItsCgroupFromItsFirstInstructionToItsDeath) {
  in_child([] {
    auto cgroup = proc::Cgroup::create();
    if (!cgroup) GTEST_SKIP() << cgroup.error();
    const std::string directory = cgroup->directory();
    EXPECT_FALSE(cgroup->populated());
    SpawnOptions options{environment_with({}), ::getpgrp()};
    options.cgroup = &*cgroup;
    const auto command = spawn(shell("(setsid sleep 1000 &) ; exec sleep 1000"), options,
                               InheritedSignals::capture());
    ASSERT_TRUE(command);
    EXPECT_TRUE(cgroup->populated());
    cgroup->kill();
    EXPECT_EQ(WTERMSIG(status_of(*command)), SIGKILL);
    EXPECT_TRUE(eventually([&] { return !cgroup->populated(); }));
    std::filesystem::create_directory(directory + "/below");
    cgroup->remove();
    EXPECT_FALSE(std::filesystem::exists(directory));
    EXPECT_FALSE(cgroup->populated());
    cgroup->remove();
  });
}

}  // namespace
}  // namespace redlock::guard
