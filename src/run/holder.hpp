#pragma once

#include "child/front.hpp"
#include "child/isolation.hpp"
#include "child/signals.hpp"
#include "run/event_writer.hpp"
#include "run/options.hpp"
#include "run/session.hpp"

namespace redlock::run {

/// The main function of the holder process of a `run`: waits for the locks, runs the command under
/// them, releases them, and reports to the front process. `front` is the object that forked it;
/// `events` is the writer for --events-fd, or null. Never returns.
[[noreturn]] void hold(const SessionOptions& about, const RunOptions& options, child::Front& front,
                       child::SignalGate& gate, const child::InheritedSignals& inherited,
                       const child::Isolation& isolation, EventWriter* events);

}  // namespace redlock::run
