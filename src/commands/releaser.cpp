#include "commands/releaser.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "engine/held_set.hpp"
#include "guard/signals.hpp"
#include "output/standard_error.hpp"
#include "proc/cpu_share.hpp"
#include "proc/descriptors.hpp"
#include "proc/title.hpp"
#include "support/clock.hpp"
#include "support/spawn.hpp"

namespace redlock::commands {
namespace {

/// A lease may be granted for months, but an unattended process should not stay for so long. What
/// it has not released by then expires by itself.
constexpr std::chrono::minutes max_life{10};

asio::awaitable<void> end_after_max_life(const Clock& clock) {
  co_await sleep_until(clock, clock.now() + max_life);
  ::_exit(0);
}

/// Closes all descriptors, because readers of a pipe see its end only when the last process has
/// closed it.
void redirect_to_null() {
  output::StandardError::of_process().close();
  proc::close_all_but(-1);
  const int null = ::open("/dev/null", O_RDWR);  // gets the lowest number: stdin
  ::dup2(null, STDOUT_FILENO);
  ::dup2(null, STDERR_FILENO);
}

asio::awaitable<int> clear_away(Session& session, std::vector<Leftover> leftovers,
                                std::optional<UnconfirmedRelease> unconfirmed) {
  spawn(session.io().get_executor(), [&] { return end_after_max_life(session.clock()); });
  for (Leftover& leftover : leftovers) session.server_set().clear_away(std::move(leftover));
  if (unconfirmed) {
    session.server_set().leave(std::move(*unconfirmed));
    co_await release_unconfirmed(session.server_set(), session.interrupt());
  }
  co_await session.server_set().all_cleared();
  co_await session.server_set().close(CloseMode::immediate);
  co_return 0;
}

}  // namespace

void release_leftovers(const SessionOptions& options, const ServerOptions& servers,
                       Session& session) {
  std::vector<Leftover> leftovers = session.server_set().leftovers();
  std::optional<UnconfirmedRelease> unconfirmed = session.server_set().take_unconfirmed();
  if ((leftovers.empty() && !unconfirmed) || ::fork() != 0) return;
  try {
    ::setsid();
    proc::give_up_cpu_share();
    guard::ignore_all();
    // Let TERM end this process: the leases that it has not released expire by themselves.
    ::signal(SIGTERM, SIG_DFL);
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    ::sigprocmask(SIG_UNBLOCK, &term, nullptr);

    proc::set_name(proc::releaser_title);
    redirect_to_null();
    if (::chdir("/") != 0) ::_exit(0);  // keep no mount busy

    Session own(options, servers, session.server_set().server_timeout());
    own.run(clear_away(own, std::move(leftovers), std::move(unconfirmed)));
  } catch (const std::exception&) {
    // No process is left to report to; the leftovers expire by themselves.
  }
  ::_exit(0);
}

}  // namespace redlock::commands
