#pragma once

#include <string>

#include "output/status.hpp"

namespace redlock::output {

/// `status --openmetrics`: the locks as OpenMetrics 1.0 writes them, which Prometheus' older text
/// format reads as well: gauges alone, by the label `key`. A key that is not UTF-8 has the label
/// `key_base64`, too, as in JSON. What is not known of a lock has no sample. Pure.
std::string openmetrics_text(const StatusReport& report, const StatusView& view);

}  // namespace redlock::output
