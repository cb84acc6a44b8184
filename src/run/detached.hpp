#pragma once

#include <sys/types.h>

#include "child/channel.hpp"
#include "child/signals.hpp"
#include "run/acquisition.hpp"

namespace redlock::run {

/// The life of a holder process that keeps a lease for no process (`acquire --detach`): acquires,
/// reports through `channel` what the script gets, closes the caller's descriptors, renews, and
/// releases at the end of AcquireOptions::detached. A lease that another process released, or that
/// was lost, ends it silently. `front`: the front process. Never returns.
[[noreturn]] void keep_detached(const SessionOptions& about, AcquireOptions& options,
                                child::Channel channel, child::SignalGate& gate, pid_t front);

}  // namespace redlock::run
