#include "commands/acquire.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "commands/acquire_output.hpp"
#include "commands/acquisition.hpp"
#include "commands/command_error.hpp"
#include "commands/held_script.hpp"
#include "commands/hold_report.hpp"
#include "commands/releaser.hpp"
#include "commands/wait.hpp"
#include "engine/inspect.hpp"
#include "guard/front.hpp"
#include "output/holder_text.hpp"
#include "output/standard_error.hpp"
#include "output/text_parts.hpp"
#include "proc/descriptors.hpp"
#include "support/brief_write.hpp"
#include "support/readable.hpp"
#include "support/spawn.hpp"
#include "support/text.hpp"

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
std::optional<Unwritten> print_for_script(std::string_view text, const ExitAs& exit_as,
                                          guard::SignalGate& gate) {
  const int max_wait = exit_as.signal == 0 ? -1 : max_last_wait_ms;
  while (!text.empty()) {
    std::array<pollfd, 2> ready{pollfd{STDOUT_FILENO, POLLOUT, 0}, pollfd{gate.fd(), POLLIN, 0}};
    if (::poll(ready.data(), ready.size(), max_wait) == 0)
      return cannot_write(exit_as.signal, "it is not read");
    if (ready[0].revents != 0) {
      const ssize_t written = write_briefly(STDOUT_FILENO, text.substr(0, PIPE_BUF));
      if (written < 0 && errno != EAGAIN) return cannot_write(exit_as.signal, errno_text(errno));
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

/// An acquire that does everything in this process: without --while-pid and --detach.
class AcquireHere {
 public:
  /// All must outlive it.
  AcquireHere(Session& session, const AcquireOptions& options, guard::SignalGate& gate)
      : session_(session),
        options_(options),
        gate_(gate),
        report_(session, options, options.command()),
        state_(report_.state),
        acquisition_(session, options, demands_of(options)),
        output_(options, session.json()) {
    spawn(session.io().get_executor(), [this] { return read_signals(); });
  }

  asio::awaitable<ExitAs> live() {
    const auto granted = co_await acquisition_.acquire();
    state_.waited = acquisition_.waited();
    bool handed_over = false;
    if (granted) {
      handed_over = co_await hand_over(**granted);
    } else {
      give_up(granted.error());
    }
    const CloseMode mode = handed_over ? CloseMode::linger : CloseMode::drain;
    co_await session_.server_set().close(mode);
    // The lock is held: a signal that comes now must not look like the end of the wait.
    co_return ExitAs{state_.outcome.exit_code, handed_over ? 0 : state_.signal};
  }

 private:
  asio::awaitable<void> read_signals() {
    Readable readable(session_.io().get_executor(), gate_.fd());
    for (;;) {
      while (const auto signal = gate_.read()) {
        if (!guard::ends_a_wait(signal->number)) continue;
        state_.signal = signal->number;
        session_.interrupt().raise();
      }
      co_await readable.wait();
    }
  }

  void give_up(const NotGranted& why) {
    if (why.interrupted) {
      report_.conclude_signalled(state_.signal, output::CommandResult::interrupted);
    } else {
      report_.conclude(why.outcome);
    }
    report_not_acquired(session_, state_.outcome, state_.waited);
    print_failure();
  }

  /// Returns whether the script has the leases.
  asio::awaitable<bool> hand_over(HeldSet& leases) {
    state_.leases = leases.leases();
    report_acquired(session_, state_.leases, state_.waited);
    const auto text = output_.write(state_.leases);
    std::optional<Unwritten> unwritten;
    if (text) {
      unwritten = print_for_script(*text, ExitAs{}, gate_);
      if (!unwritten) {
        state_.outcome = report_.outcome_of(output::CommandResult::acquired, {});
        if (options_.is_hold()) co_await report_hold(state_.leases.front());
        co_return true;
      }
      state_.signal = unwritten->signal;
    }
    const SetReleaseResult released = co_await leases.release();
    report_.released(released, acquisition_.ended());
    output_.take_back();
    report_.undone(text ? unwritten->why : text.error());
    if (!text) print_failure();
    co_return false;
  }

  /// No process renews a hold, so servers that forget it matter more than under a command.
  asio::awaitable<void> report_hold(const Lease& lease) {
    const std::string key = output::key_text(lease.resource);
    std::optional<std::string> slot;
    if (!options_.mode.only.empty()) slot = options_.mode.only.front();
    session_.console().notice(fmt::format(
        "{}: {}on hold until {}; `redlock-cli release {}{}` lifts it", key,
        slot ? fmt::format("slot {} ", *slot) : "", output::end_text(lease.ttl.length()),
        output::key_option(lease.resource), output::slot_option(slot)));
    ServerSet& servers = session_.server_set();
    const std::vector<std::string> forgetful = co_await servers_that_persist_nothing(servers);
    const std::string text = output::forgetful_text(forgetful, servers.size());
    if (!text.empty()) session_.console().notice(key + ": " + text);
  }

  void print_failure() {
    const ExitAs exit_as{state_.outcome.exit_code, state_.signal};
    const auto unwritten =
        print_for_script(output_.failure_text(state_.outcome).text, exit_as, gate_);
    if (unwritten && unwritten->signal != 0) state_.signal = unwritten->signal;
  }

  Session& session_;
  const AcquireOptions& options_;
  guard::SignalGate& gate_;
  HoldReport report_;
  output::RunState& state_;  ///< of the report
  Acquisition acquisition_;
  AcquireOutput output_;
};

ExitAs acquire_here(const AcquireOptions& options, const SessionOptions& about,
                    guard::SignalGate& gate) {
  Session session(about, options.servers, options.server_timeout);
  const ScriptListeners listeners(session, options, ::getpgrp());
  AcquireHere here(session, options, gate);
  const ExitAs exit_as = session.run(here.live());
  release_leftovers(about, options.servers, session);
  return exit_as;
}

/// With --while-pid or --detach: a holder process acquires and stays in the background; this
/// process prints the result and ends.
ExitAs acquire_in_background(AcquireOptions& options, const SessionOptions& about,
                             guard::SignalGate& gate, const Start& start) {
  proc::require_spare_descriptors(descriptors_of_holder(options.servers));
  guard::Front front(gate, options.background->stop, /*shares_group=*/false, std::nullopt, nullptr);
  const auto cookies = options.background->process ? proc::CiCookies::hide : proc::CiCookies::keep;
  if (front.fork_holder(start.argc, start.argv, cookies)) hold_script(about, options, front, gate);

  output::StandardError::of_process().forget();
  const guard::HolderExit holder_exit = front.guard();
  if (holder_exit.source != guard::HolderExit::Source::report) {
    const bool never_forked = holder_exit.source == guard::HolderExit::Source::not_forked;
    throw CommandError(ExitCode::os_error,
                       never_forked ? "cannot fork the holder process; nothing was locked"
                                    : "the holder process ended without a result; the lock, if "
                                      "it was held, expires by itself");
  }

  const ExitAs exit_as{holder_exit.exit_code, holder_exit.signal};
  if (const auto unwritten = print_for_script(holder_exit.report, exit_as, gate)) {
    front.dismiss_holder();  // it releases the lock
    if (unwritten->signal != 0) return ExitAs{0, unwritten->signal};
    if (exit_as.exit_code != 0) return exit_as;
    throw CommandError(ExitCode::os_error, unwritten->why);
  }
  front.confirm_hand_over();
  return exit_as;
}

}  // namespace

ExitAs acquire(AcquireOptions options, const SessionOptions& about, const Start& start) {
  guard::SignalGate gate(start.inherited);
  if (options.background) return acquire_in_background(options, about, gate, start);
  return acquire_here(options, about, gate);
}

}  // namespace redlock::commands
