#pragma once

#include "commands/options.hpp"
#include "commands/session.hpp"
#include "guard/front.hpp"
#include "guard/signals.hpp"

namespace redlock::commands {

/// The main function of a holder process that `acquire` leaves in the background: acquires the
/// leases, reports the script's output through `front`, closes the caller's descriptors, renews,
/// and releases. Leases that do not reach the script are released at once.
///
/// With Background::process it keeps the leases while that process lives, but no longer than
/// max_hold; the loss of a lease stops the process and its descendants as the plan says. Without a
/// process it keeps the leases until max_hold ends or one of them is lost, which ends the holder
/// process silently. In either case, it also ends silently when another process releases one.
///
/// `front` is the object that forked it. Never returns.
[[noreturn]] void hold_in_background(const SessionOptions& about, AcquireOptions& options,
                                     guard::Front& front, guard::SignalGate& gate);

}  // namespace redlock::commands
