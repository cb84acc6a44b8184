#pragma once

#include <unistd.h>

#include <exception>
#include <memory>
#include <utility>

#include "child/front_link.hpp"
#include "child/signals.hpp"
#include "run/leftovers.hpp"
#include "run/options.hpp"
#include "run/session.hpp"
#include "support/text.hpp"

namespace redlock::run {

/// The life of a holder process that `acquire` leaves in the background: `Holder::live()`, with a
/// session of its own and a link to the front process. `front`: that process.
template <class Holder>
[[noreturn]] void live_in_background(const SessionOptions& about, AcquireOptions& options,
                                     child::Channel channel, child::SignalGate& gate, pid_t front) {
  ::setpgid(0, 0);
  child::ignore_all();
  try {
    Session session(about, options.servers, options.server_timeout);
    const auto link = std::make_shared<child::FrontLink>(
        session.io().get_executor(), session.clock(), std::move(channel), gate, front);
    Holder holder(session, options, link, front);
    session.run(holder.live());
    clear_away_behind(about, options.servers, session);
  } catch (const std::exception& error) {
    // The front process learns of it from our end.
    about.console.error(escape_for_terminal(error.what()));
  }
  ::_exit(0);
}

}  // namespace redlock::run
