#pragma once

#include <string>

#include "core/stop_schedule.hpp"
#include "support/trace.hpp"

namespace redlock::guard {

/// Writes a step of a stop schedule to the trace, if that is on.
inline void trace_step(const StopStep& step) {
  if (!is_traced()) return;
  std::string text(word_of(step.action));
  if (step.why) text.append(" ").append(word_of(*step.why));
  trace("stop", text + ", next at " + trace_time(step.next));
}

}  // namespace redlock::guard
