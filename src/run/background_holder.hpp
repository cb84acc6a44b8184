#pragma once

#include "child/front.hpp"
#include "child/signals.hpp"
#include "run/options.hpp"
#include "run/session.hpp"

namespace redlock::run {

/// The whole life of a holder process that `acquire` leaves in the background: acquires, reports
/// through `front` what the script gets, closes the caller's descriptors, renews, and releases.
/// What does not reach the script is released at once.
///
/// With Background::process it keeps the leases while that process lives, and no longer than
/// max_hold. A lost lease stops the process and its descendants as the plan says. Without a process
/// it keeps them until max_hold ends or one of them is lost, which ends the holder process
/// silently. So does one that another process released, in either case.
///
/// `front` is the one that forked it. Never returns.
[[noreturn]] void hold_in_background(const SessionOptions& about, AcquireOptions& options,
                                     child::Front& front, child::SignalGate& gate);

}  // namespace redlock::run
