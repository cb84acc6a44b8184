#include "guard/signals.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#include "commands.hpp"

namespace redlock::guard {
namespace {

using namespace testing;

std::string signal_state(const std::string& status) {
  std::string state;
  for (const char* field : {"SigBlk:", "SigIgn:"}) {
    const auto start = status.find(field);
    if (start != std::string::npos)
      state += status.substr(start, status.find('\n', start) - start) + "\n";
  }
  return state;
}

std::string our_signal_state() {
  std::ifstream file("/proc/self/status");
  return signal_state({std::istreambuf_iterator<char>(file), {}});
}

void block(int signal) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
}

std::optional<ReceivedSignal> next(SignalGate& gate) {
  pollfd readable{gate.fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&readable, 1, static_cast<int>(kHangSeconds) * 1000), 1);
  return gate.read();
}

/// Calls `prepare`, then compares the signal state of a command with the one that we were started
/// with.
void expect_same_state_in_command(const std::function<void()>& prepare) {
  in_child([&prepare] {
    prepare();
    const std::string at_start = our_signal_state();
    const auto inherited = InheritedSignals::capture();
    const SignalGate gate(inherited);
    EXPECT_NE(our_signal_state(), at_start);
    EXPECT_EQ(signal_state(output_of({"/bin/cat", {"cat", "/proc/self/status"}}, inherited)),
              at_start);
  });
}

TEST(InheritedSignals, CapturesMaskAndIgnoredSignals) {
  in_child([] {
    ::signal(SIGUSR1, SIG_IGN);
    block(SIGUSR2);
    const auto inherited = InheritedSignals::capture();
    EXPECT_TRUE(inherited.ignored(SIGUSR1));
    EXPECT_FALSE(inherited.ignored(SIGUSR2));
    EXPECT_TRUE(inherited.blocked(SIGUSR2));
    EXPECT_FALSE(inherited.blocked(SIGUSR1));
    EXPECT_FALSE(inherited.ignored(SIGWINCH)) << "ignored by default is not ignored";
  });
}

TEST(InheritedSignals, CommandStartsWithDefaults) {
  expect_same_state_in_command([] {});
}

TEST(InheritedSignals, CommandStartsWithIgnoredSignals) {
  expect_same_state_in_command([] {
    for (const int signal : {SIGCHLD, SIGPIPE, SIGHUP, SIGUSR1, SIGTSTP, SIGRTMIN + 2})
      ::signal(signal, SIG_IGN);
  });
}

TEST(InheritedSignals, CommandStartsWithBlockedSignals) {
  expect_same_state_in_command([] {
    for (const int signal : {SIGCHLD, SIGPIPE, SIGTERM, SIGUSR2, SIGRTMAX}) block(signal);
  });
}

TEST(SignalGate, ReadsNothingWhenNothingIsPending) {
  in_child([] {
    SignalGate gate(InheritedSignals::capture());
    EXPECT_FALSE(gate.read());
    EXPECT_EQ(::fcntl(gate.fd(), F_GETFD), FD_CLOEXEC);
  });
}

TEST(SignalGate, CollectsWithSender) {
  in_child([] {
    SignalGate gate(InheritedSignals::capture());
    for (const int signal :
         {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH}) {
      ::kill(::getpid(), signal);
      const auto received = next(gate);
      ASSERT_TRUE(received);
      EXPECT_EQ(received->number, signal);
      EXPECT_FALSE(received->from_kernel);
      EXPECT_EQ(received->sender, ::getpid());
    }
    EXPECT_FALSE(gate.read());
  });
}

TEST(SignalGate, RecognisesSignalsOfTheTerminal) {
  in_child([] {
    ::setsid();
    const UniqueFd master(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    if (!master || ::grantpt(master.get()) != 0 || ::unlockpt(master.get()) != 0)
      GTEST_SKIP() << "no pseudo terminals here";
    SignalGate gate(InheritedSignals::capture());
    const UniqueFd terminal(
        ::open(::ptsname(master.get()),
               O_RDWR | O_CLOEXEC));  // the first terminal that a session leader opens is its own
    ASSERT_TRUE(terminal);
    ASSERT_EQ(::write(master.get(), "\x03", 1), 1);
    const auto received = next(gate);
    ASSERT_TRUE(received);
    EXPECT_EQ(received->number, SIGINT);
    EXPECT_TRUE(received->from_kernel);
    EXPECT_EQ(received->sender, 0);
  });
}

TEST(SignalGate, LeavesIgnoredSignalsAlone) {
  in_child([] {
    ::signal(SIGHUP, SIG_IGN);
    SignalGate gate(InheritedSignals::capture());
    ::raise(SIGHUP);
    EXPECT_FALSE(gate.read());
  });
}

TEST(SignalGate, LeavesBlockedSignalsPending) {
  in_child([] {
    block(SIGUSR1);
    SignalGate gate(InheritedSignals::capture());
    ::raise(SIGUSR1);
    EXPECT_FALSE(gate.read());
    sigset_t pending;
    ::sigpending(&pending);
    EXPECT_EQ(sigismember(&pending, SIGUSR1), 1);
  });
}

TEST(SignalGate, SeesChildrenEvenIfSigchldWasIgnored) {
  in_child([] {
    ::signal(SIGCHLD, SIG_IGN);
    const auto inherited = InheritedSignals::capture();
    SignalGate gate(inherited);
    const pid_t child = started(shell("exit 3"), inherited);
    const auto received = next(gate);
    ASSERT_TRUE(received);
    EXPECT_EQ(received->number, SIGCHLD);
    EXPECT_EQ(received->sender, child);
    EXPECT_EQ(WEXITSTATUS(status_of(child)), 3);
  });
}

TEST(SignalGate, BrokenPipeDoesNotKill) {
  in_child([] {
    const SignalGate gate(InheritedSignals::capture());
    Pipe pipe;
    pipe.read_end.reset();
    EXPECT_EQ(::write(pipe.write_end.get(), "x", 1), -1);
    EXPECT_EQ(errno, EPIPE);
  });
}

TEST(EndsAWait, OnlySignalsThatEndAProcess) {
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU,
                           SIGIO, SIGRTMIN, SIGRTMAX})
    EXPECT_TRUE(ends_a_wait(signal)) << signal;
  for (const int signal :
       {SIGCONT, SIGWINCH, SIGCHLD, SIGURG, SIGPIPE, SIGTSTP, SIGKILL, SIGSEGV, SIGABRT, 32, 33})
    EXPECT_FALSE(ends_a_wait(signal)) << signal;
}

TEST(DieOf, LeavesTheSignalInTheStatusAndNoCore) {
  const Directory directory;
  for (const int signal : {SIGTERM, SIGKILL, SIGQUIT, SIGINT, SIGHUP, SIGSEGV, SIGPIPE, SIGRTMIN}) {
    const int status = status_of(forked([&] {
      rlimit core{};
      ::getrlimit(RLIMIT_CORE, &core);
      core.rlim_cur = core.rlim_max;
      ::setrlimit(RLIMIT_CORE, &core);
      EXPECT_EQ(::chdir(directory.path().c_str()), 0);
      ::signal(SIGPIPE, SIG_IGN);
      const SignalGate gate(InheritedSignals::capture());
      return die_of(signal);
    }));
    ASSERT_TRUE(WIFSIGNALED(status)) << signal;
    EXPECT_EQ(WTERMSIG(status), signal);
    EXPECT_FALSE(WCOREDUMP(status));
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(DieOf, ReturnsForSignalsThatDoNotKill) {
  in_child([] {
    for (const int signal : {SIGCHLD, SIGCONT, SIGWINCH, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU})
      EXPECT_EQ(die_of(signal), 128 + signal);
  });
}

TEST(DieOf, ReturnsAsInitOfANamespace) {
  in_child([] {
    if (::unshare(CLONE_NEWPID) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0)
      GTEST_SKIP() << "no pid namespaces here";
    EXPECT_EQ(status_of(forked([] {
                return die_of(SIGTERM) == 128 + SIGTERM && die_of(SIGKILL) == 128 + SIGKILL ? 0 : 1;
              })),
              0);
  });
}

TEST(ParseSignal, NamesAndNumbers) {
  struct Case {
    const char* text;
    int signal;
  };
  for (const auto& [text, signal] :
       {Case{"TERM", SIGTERM}, Case{"SIGTERM", SIGTERM}, Case{"term", SIGTERM},
        Case{"SigTerm", SIGTERM}, Case{"15", SIGTERM}, Case{"kill", SIGKILL}, Case{"9", 9},
        Case{"USR1", SIGUSR1}, Case{"CLD", SIGCHLD}, Case{"POLL", SIGIO}, Case{"RTMIN", SIGRTMIN},
        Case{"SIGRTMIN+3", SIGRTMIN + 3}, Case{"rtmax-1", SIGRTMAX - 1}, Case{"RTMAX", SIGRTMAX},
        Case{"64", 64}}) {
    EXPECT_EQ(parse_signal(text), signal) << text;
  }
}

TEST(ParseSignal, RefusesUnknownSignals) {
  for (const char* text :
       {"",        "0",           "-1",       "+15",     "15 ",      " TERM",      "TERM ", "65",
        "32",      "99999999999", "0x0f",     "SIG",     "SIG15",    "SIGSIGTERM", "TERMS", "EXIT",
        "RTMIN-1", "RTMIN+",      "RTMIN+31", "RTMAX+1", "RTMAX-99", "RTMIN+-1"}) {
    EXPECT_FALSE(parse_signal(text)) << text;
  }
}

TEST(SignalName, ShowsTheUsualName) {
  EXPECT_EQ(signal_name(SIGTERM), "TERM");
  EXPECT_EQ(signal_name(SIGABRT), "ABRT");
  EXPECT_EQ(signal_name(SIGCHLD), "CHLD");
  EXPECT_EQ(signal_name(SIGRTMIN), "RTMIN");
  EXPECT_EQ(signal_name(SIGRTMIN + 3), "RTMIN+3");
  EXPECT_EQ(signal_name(33), "33");
  EXPECT_EQ(signal_name(0), "0");
}

TEST(SignalName, IsTheSameAsInLibc) {
  for (int signal = 1; signal < 32; ++signal)
    EXPECT_EQ(signal_name(signal), ::sigabbrev_np(signal));
}

TEST(SignalName, IsParsedBack) {
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    if (signal >= 32 && signal < SIGRTMIN) continue;  // libc's own
    EXPECT_EQ(parse_signal(signal_name(signal)), signal);
  }
}

}  // namespace
}  // namespace redlock::guard
