#pragma once

#include "core/stop_plan.hpp"

namespace redlock::guard {

using redlock::Descendants;
using redlock::keeps_lease;
using redlock::OnLost;
using redlock::SignalTo;
using redlock::StopPlan;
using redlock::StopReason;
using redlock::word_of;

}  // namespace redlock::guard
