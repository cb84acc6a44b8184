#pragma once

#include "commands/options.hpp"
#include "commands/session.hpp"
#include "guard/front.hpp"
#include "guard/isolation.hpp"
#include "guard/signals.hpp"
#include "output/event_writer.hpp"

namespace redlock::commands {

/// The main function of the holder process of a `run`: waits for the locks, runs the command under
/// them, releases them, and reports to the front process. `front` is the object that forked it;
/// `events` is the writer for --events-fd, or null. Never returns.
[[noreturn]] void hold(const SessionOptions& about, const RunOptions& options, guard::Front& front,
                       guard::SignalGate& gate, const guard::InheritedSignals& inherited,
                       const guard::Isolation& isolation, output::EventWriter* events);

}  // namespace redlock::commands
