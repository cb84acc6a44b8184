#include "commands/nested_runs.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <asio/io_context.hpp>
#include <csignal>
#include <optional>

#include "commands/parent_links.hpp"
#include "commands/unix_name.hpp"
#include "support/random.hpp"
#include "support/spawn.hpp"

namespace redlock::commands {
namespace {

Token a_token() {
  std::array<std::byte, Token::bits / 8> bytes{};
  fill_random(bytes);
  return Token::from_random(bytes);
}

/// A parent and a nested run of it, in one process.
struct Nested : ::testing::Test {
  Nested() {
    runs = std::make_shared<NestedRuns>(io.get_executor(), clock, std::vector<Lease>{lease},
                                        [this] { ++changes; });
    links = make_links();
  }

  std::shared_ptr<ParentLinks> make_links() {
    return std::make_shared<ParentLinks>(io.get_executor(), clock, interrupt,
                                         [this](int signal) { signals.push_back(signal); });
  }

  /// The entry of REDLOCK_HELD for the parent: this process, possibly with another pid.
  [[nodiscard]] ParentLease held_by(long pid) const {
    const LeaseHandle::Part part{lease.resource, lease.token, Fence()};
    return {ProcessIdentity{"boot", pid, 1}, *Ttl::from(std::chrono::seconds(30)),
            LeaseHandle{{part}, "servers"}};
  }

  /// Whether the nested run was accepted.
  bool join(const ParentLease& held) {
    std::optional<bool> joined;
    spawn(io.get_executor(),
          [&]() -> asio::awaitable<void> { joined = co_await links->join(held); });
    run_until([&] { return joined.has_value(); });
    return *joined;
  }

  template <class Done>
  void run_until(Done done) {
    io.restart();
    while (!done()) io.run_one();
  }

  asio::io_context io;
  SystemClock clock{io.get_executor()};
  Interrupt interrupt;
  Lease lease{*Resource::from("demo"),
              a_token(),
              LeaseId(),
              Fence(),
              *Ttl::from(std::chrono::seconds(30)),
              Instant()};
  int changes = 0;
  std::vector<int> signals;
  std::shared_ptr<NestedRuns> runs;
  std::shared_ptr<ParentLinks> links;
};

TEST_F(Nested, IsCountedWhileItLives) {
  runs->listen();
  EXPECT_TRUE(join(held_by(::getpid())));
  EXPECT_EQ(runs->holders(), std::vector<pid_t>{::getpid()});
  runs->close();
  EXPECT_FALSE(runs->empty());
}

TEST_F(Nested, JoinsEachParentOnce) {
  runs->listen();
  EXPECT_TRUE(join(held_by(::getpid())));
  EXPECT_TRUE(join(held_by(::getpid())));
  EXPECT_EQ(runs->holders().size(), 1U);
}

TEST_F(Nested, DoesNotCountAfterItsEnd) {
  runs->listen();
  const pid_t child = ::fork();
  if (child == 0) {
    // As the program does it, but without the event loop, which does not survive a fork.
    const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
    const UnixName name(parent_socket_name(lease.token));
    const std::string secret = lease.token.secret();
    char answer = 0;
    const bool joined = ::connect(fd, name.address(), name.size()) == 0 &&
                        ::send(fd, secret.data(), secret.size(), 0) > 0 &&
                        ::recv(fd, &answer, 1, 0) == 1;
    ::_exit(joined ? 0 : 1);
  }
  run_until([&] { return changes == 1; });
  EXPECT_TRUE(runs->empty());
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(Nested, IsTooLateForAParentThatIsEnding) {
  runs->listen();
  runs->close();
  EXPECT_FALSE(join(held_by(::getpid())));
  EXPECT_TRUE(runs->empty());
}

TEST_F(Nested, IsRefusedWithAnotherToken) {
  runs->listen();
  const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  const UnixName name(parent_socket_name(lease.token));
  ASSERT_EQ(::connect(fd, name.address(), name.size()), 0);
  const std::string secret = a_token().secret();
  ASSERT_GT(::send(fd, secret.data(), secret.size(), 0), 0);
  char answer = 0;
  run_until([&] { return ::recv(fd, &answer, 1, MSG_DONTWAIT) >= 0; });
  EXPECT_TRUE(runs->empty());
  ::close(fd);
}

TEST_F(Nested, IsNotKeptOutBySilentConnections) {
  runs->listen();
  const UnixName name(parent_socket_name(lease.token));
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 40; ++i) {
    silent.emplace_back(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(silent.back().get(), name.address(), name.size()), 0);
  }
  EXPECT_TRUE(join(held_by(::getpid())));
  EXPECT_EQ(runs->holders().size(), 1U);
}

/// Keeps as many connections open as it can, and never sends anything.
[[noreturn]] void flood(const UnixName& name) {
  std::vector<UniqueFd> silent(100);
  for (;;) {
    for (UniqueFd& fd : silent) {
      char nothing = 0;
      if (fd && ::recv(fd.get(), &nothing, 1, MSG_DONTWAIT) != 0) continue;  // not closed
      fd.reset(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
      if (::connect(fd.get(), name.address(), name.size()) != 0) fd.reset();
    }
    ::usleep(1000);
  }
}

TEST_F(Nested, IsNotKeptOutByAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be two users";
  runs->listen();
  const UnixName name(parent_socket_name(lease.token));
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setresuid(65534, 65534, 65534) != 0) ::_exit(1);
    flood(name);
  }
  // Meanwhile the other user's connections use up their limit.
  bool is_full = false;
  spawn(io.get_executor(), [&]() -> asio::awaitable<void> {
    co_await sleep_until(clock, clock.now() + std::chrono::milliseconds(300));
    is_full = true;
  });
  run_until([&] { return is_full; });
  const Instant before = clock.now();
  EXPECT_TRUE(join(held_by(::getpid())));
  EXPECT_LT(clock.now() - before, std::chrono::seconds(2)) << "before the first of them times out";
  ::kill(child, SIGKILL);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST_F(Nested, GivesUpOnInterrupt) {
  runs->listen();
  runs->close();  // the socket exists until the loop runs, but no process answers
  interrupt.raise();
  EXPECT_FALSE(join(held_by(::getpid())));
}

TEST_F(Nested, TrustsNoOtherProcessAtTheParentsAddress) {
  runs->listen();
  EXPECT_FALSE(join(held_by(::getppid())));
}

TEST_F(Nested, GetsTheSignalsThatItsParentPassesOn) {
  runs->listen();
  EXPECT_TRUE(join(held_by(::getpid())));
  runs->pass_on(SIGTERM, /*spared_group=*/0);
  run_until([&] { return !signals.empty(); });
  EXPECT_EQ(signals, std::vector<int>{SIGTERM});
}

TEST_F(Nested, CannotJoinARunThatInheritedItsLease) {
  lease.keeping = Keeping::inherited;
  runs = std::make_shared<NestedRuns>(io.get_executor(), clock, std::vector<Lease>{lease}, [] {});
  runs->listen();
  EXPECT_FALSE(join(held_by(::getpid())));
}

}  // namespace
}  // namespace redlock::commands
