#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "output/json.hpp"

namespace redlock::output {

/// `status --openmetrics`: the locks as OpenMetrics 1.0 writes them, which Prometheus' older text
/// format reads as well: gauges alone, by the label `key`. A key that is not UTF-8 has the label
/// `key_base64`, too, as in JSON. What is not known of a lock has no sample. Of each lock it keeps
/// the samples alone, as there may be many.
class OpenMetrics {
 public:
  /// `slots`: how many each lock has; else as many as its holders say.
  explicit OpenMetrics(std::optional<std::size_t> slots);

  /// `at`: the wall clock's time of the answer.
  void add(const KeyStatus& key, Milliseconds at);

  /// All of it, once.
  [[nodiscard]] std::string text() &&;

 private:
  std::optional<std::size_t> slots_;
  std::vector<std::string> samples_;  ///< of each metric
};

}  // namespace redlock::output
