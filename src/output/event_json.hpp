#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/lease.hpp"
#include "output/event.hpp"

namespace redlock::output {

/// The fields that every event's JSON has besides its own.
struct EventContext {
  const std::vector<Resource>& resources;
  const std::vector<Lease>& leases;  ///< those granted so far
  Milliseconds at;                   ///< wall clock
  std::size_t dropped;               ///< number of events before it that were not written
};

/// {"event","at",…}; empty for an event that only appears in messages.
std::string event_json(const event::Any& event, const EventContext& context);

}  // namespace redlock::output
