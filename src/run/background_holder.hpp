#pragma once

#include <sys/types.h>

#include "child/channel.hpp"
#include "child/signals.hpp"
#include "run/options.hpp"
#include "run/session.hpp"

namespace redlock::run {

/// The whole life of a holder process that `acquire` leaves in the background: acquires, reports
/// through `channel` what the script gets, closes the caller's descriptors, renews, and releases.
/// What does not reach the script is released at once.
///
/// With Background::process it keeps the leases while that process lives, and no longer than
/// max_hold. A lost lease stops the process and its descendants as the plan says. Without a process
/// it keeps them until max_hold ends; then a lost lease ends the holder process silently. So does
/// one that another process released, in either case.
///
/// `front`: the front process. Never returns.
[[noreturn]] void hold_in_background(const SessionOptions& about, AcquireOptions& options,
                                     child::Channel channel, child::SignalGate& gate, pid_t front);

}  // namespace redlock::run
