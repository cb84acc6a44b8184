#pragma once

#include "child/channel.hpp"
#include "child/descriptors.hpp"
#include "child/isolation.hpp"
#include "child/shared_page.hpp"
#include "child/shield.hpp"
#include "child/signals.hpp"
#include "run/event_writer.hpp"
#include "run/options.hpp"
#include "run/session.hpp"

namespace redlock::run {

/// What the front process gives to the holder process.
struct HolderParts {
  child::Channel channel;
  child::SharedPage& page;
  child::SignalGate& gate;
  const child::InheritedSignals& inherited;
  const child::InheritedDescriptors& inherited_descriptors;
  const child::Isolation& isolation;
  pid_t front;                ///< the front process
  EventWriter* event_writer;  ///< of --events-fd, or null
  child::Shield shield;       ///< between the two, if any
  pid_t job_group;            ///< the group that the command joins, 0: none
};

/// The whole life of the holder process: wait, start the command, renew, release. Reports to the
/// front process and never returns. Runs in a process of its own.
[[noreturn]] void hold(const SessionOptions& about, const RunOptions& options, HolderParts parts);

}  // namespace redlock::run
