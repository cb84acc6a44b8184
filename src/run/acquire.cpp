#include "run/acquire.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "child/descriptors.hpp"
#include "child/front.hpp"
#include "output/console.hpp"
#include "output/standard_error.hpp"
#include "run/acquisition.hpp"
#include "run/background_holder.hpp"
#include "run/command_error.hpp"
#include "run/leftovers.hpp"
#include "support/readable.hpp"
#include "support/spawn.hpp"

namespace redlock::run {
namespace {

/// Call it right after the failed write, because it reads errno.
std::string cannot_write() {
  return fmt::format("cannot write the lease to stdout: {}", std::strerror(errno));
}

asio::awaitable<Finish> acquire_and_print(Session& session, Acquisition& acquisition) {
  AcquireOutput output = co_await acquisition.acquire();
  if (!output::write_all(STDOUT_FILENO, output.text) && output.leases) {
    const std::string why = cannot_write();
    output = co_await acquisition.undo(output.leases, why);
  }
  const CloseMode mode = output.leases ? CloseMode::linger : CloseMode::drain;
  co_await session.server_set().close(mode);
  co_return output.finish;
}

asio::awaitable<void> read_signals(Session& session, child::SignalGate& gate,
                                   Acquisition& acquisition) {
  Readable readable(session.io().get_executor(), gate.fd());
  for (;;) {
    while (const auto signal = gate.read()) acquisition.on_signal(signal->number);
    co_await readable.wait();
  }
}

/// Without --while-pid and --detach: does everything in this process.
Finish acquire_here(const AcquireOptions& options, const SessionOptions& about,
                    child::SignalGate& gate) {
  Session session(about, options.servers, options.server_timeout);
  Acquisition acquisition(session, options, ::getpgrp());
  spawn(session.io().get_executor(), [&] { return read_signals(session, gate, acquisition); });
  const Finish finish = session.run(acquire_and_print(session, acquisition));
  release_leftovers(about, options.servers, session);
  return finish;
}

/// With --while-pid or --detach: a holder process acquires and stays in the background; this
/// process prints the result and ends.
Finish acquire_in_background(AcquireOptions& options, const SessionOptions& about,
                             child::SignalGate& gate, const Start& start) {
  child::require_spare_descriptors(descriptors_of_holder(options.servers));
  child::Front front(gate, options.background->stop, /*shares_group=*/false, std::nullopt, nullptr);
  const auto cookies =
      options.background->process ? child::CiCookies::hide : child::CiCookies::keep;
  if (front.fork_holder(start.argc, start.argv, cookies))
    hold_in_background(about, options, front, gate);

  output::StandardError::of_process().forget();
  const child::HolderExit holder_exit = front.guard();
  if (holder_exit.source != child::HolderExit::Source::report) {
    const bool never_forked = holder_exit.source == child::HolderExit::Source::not_forked;
    throw CommandError(ExitCode::os_error,
                       never_forked ? "cannot fork the holder process; nothing was locked"
                                    : "the holder process ended without a result; the lock, if "
                                      "it was held, expires by itself");
  }

  if (!output::write_all(STDOUT_FILENO, holder_exit.report)) {
    const std::string why = cannot_write();
    front.dismiss_holder();  // it releases the lock
    throw CommandError(ExitCode::os_error, why);
  }
  front.confirm_hand_over();
  return Finish{holder_exit.exit_code, holder_exit.signal};
}

}  // namespace

Finish acquire(AcquireOptions options, const SessionOptions& about, const Start& start) {
  child::SignalGate gate(start.inherited);
  if (options.background) return acquire_in_background(options, about, gate, start);
  return acquire_here(options, about, gate);
}

}  // namespace redlock::run
