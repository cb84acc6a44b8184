#include "commands/acquire.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "commands/acquisition.hpp"
#include "commands/background_holder.hpp"
#include "commands/command_error.hpp"
#include "commands/leftovers.hpp"
#include "guard/front.hpp"
#include "output/standard_error.hpp"
#include "proc/descriptors.hpp"
#include "support/brief_write.hpp"
#include "support/readable.hpp"
#include "support/spawn.hpp"

namespace redlock::commands {
namespace {

/// How long the output waits for its reader after a signal has ended the wait for the lock.
constexpr int max_last_wait_ms = 1000;

/// Why the output did not reach the script.
struct Unwritten {
  int signal;       ///< the signal to die of; 0: none came
  std::string why;  ///< for the user
};

Unwritten cannot_write(int signal, std::string_view why) {
  return {signal, fmt::format("cannot write the lease to stdout: {}", why)};
}

/// Writes the output to stdout, and waits for its reader until a signal comes, or for a second if
/// one has ended the wait for the lock; nullopt if all is written. It leaves O_NONBLOCK as it is,
/// because other processes of the script share stdout.
std::optional<Unwritten> print_for_script(std::string_view text, const Finish& finish,
                                          guard::SignalGate& gate) {
  const int max_wait = finish.signal == 0 ? -1 : max_last_wait_ms;
  while (!text.empty()) {
    std::array<pollfd, 2> ready{pollfd{STDOUT_FILENO, POLLOUT, 0}, pollfd{gate.fd(), POLLIN, 0}};
    if (::poll(ready.data(), ready.size(), max_wait) == 0)
      return cannot_write(finish.signal, "it is not read");
    if (ready[0].revents != 0) {
      const ssize_t written = write_briefly(STDOUT_FILENO, text.substr(0, PIPE_BUF));
      if (written < 0 && errno != EAGAIN) return cannot_write(finish.signal, std::strerror(errno));
      if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
      if (written > 0) continue;
    }
    while (const auto signal = gate.read()) {
      if (guard::ends_a_wait(signal->number)) {
        return cannot_write(signal->number, fmt::format("{} came before it was read",
                                                        guard::signal_name(signal->number)));
      }
    }
  }
  return std::nullopt;
}

asio::awaitable<Finish> acquire_and_print(Session& session, Acquisition& acquisition,
                                          guard::SignalGate& gate) {
  AcquireOutput output = co_await acquisition.acquire();
  if (const auto unwritten = print_for_script(output.text, output.finish, gate)) {
    if (output.leases) output = co_await acquisition.undo(output.leases, unwritten->why);
    if (unwritten->signal != 0) output.finish = Finish{0, unwritten->signal};
  }
  const CloseMode mode = output.leases ? CloseMode::linger : CloseMode::drain;
  co_await session.server_set().close(mode);
  co_return output.finish;
}

asio::awaitable<void> read_signals(Session& session, guard::SignalGate& gate,
                                   Acquisition& acquisition) {
  Readable readable(session.io().get_executor(), gate.fd());
  for (;;) {
    while (const auto signal = gate.read()) acquisition.on_signal(signal->number);
    co_await readable.wait();
  }
}

/// Without --while-pid and --detach: does everything in this process.
Finish acquire_here(const AcquireOptions& options, const SessionOptions& about,
                    guard::SignalGate& gate) {
  Session session(about, options.servers, options.server_timeout);
  Acquisition acquisition(session, options, ::getpgrp());
  spawn(session.io().get_executor(), [&] { return read_signals(session, gate, acquisition); });
  const Finish finish = session.run(acquire_and_print(session, acquisition, gate));
  release_leftovers(about, options.servers, session);
  return finish;
}

/// With --while-pid or --detach: a holder process acquires and stays in the background; this
/// process prints the result and ends.
Finish acquire_in_background(AcquireOptions& options, const SessionOptions& about,
                             guard::SignalGate& gate, const Start& start) {
  proc::require_spare_descriptors(descriptors_of_holder(options.servers));
  guard::Front front(gate, options.background->stop, /*shares_group=*/false, std::nullopt, nullptr);
  const auto cookies = options.background->process ? proc::CiCookies::hide : proc::CiCookies::keep;
  if (front.fork_holder(start.argc, start.argv, cookies))
    hold_in_background(about, options, front, gate);

  output::StandardError::of_process().forget();
  const guard::HolderExit holder_exit = front.guard();
  if (holder_exit.source != guard::HolderExit::Source::report) {
    const bool never_forked = holder_exit.source == guard::HolderExit::Source::not_forked;
    throw CommandError(ExitCode::os_error,
                       never_forked ? "cannot fork the holder process; nothing was locked"
                                    : "the holder process ended without a result; the lock, if "
                                      "it was held, expires by itself");
  }

  const Finish finish{holder_exit.exit_code, holder_exit.signal};
  if (const auto unwritten = print_for_script(holder_exit.report, finish, gate)) {
    front.dismiss_holder();  // it releases the lock
    if (unwritten->signal != 0) return Finish{0, unwritten->signal};
    if (finish.exit_code != 0) return finish;
    throw CommandError(ExitCode::os_error, unwritten->why);
  }
  front.confirm_hand_over();
  return finish;
}

}  // namespace

Finish acquire(AcquireOptions options, const SessionOptions& about, const Start& start) {
  guard::SignalGate gate(start.inherited);
  if (options.background) return acquire_in_background(options, about, gate, start);
  return acquire_here(options, about, gate);
}

}  // namespace redlock::commands
