#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "output/key_status.hpp"

namespace redlock::output {

/// `status --openmetrics`: gauges with the label `key`, in a form that is valid both as OpenMetrics
/// 1.0 and in the older text format of Prometheus. A key that is not UTF-8 also has the label
/// `key_base64`, as in JSON. An unknown value has no sample. There may be many locks, so it keeps
/// only the samples of each.
class OpenMetrics {
 public:
  /// `slots`: the number of slots of each lock; nullopt: taken from the holders' records.
  explicit OpenMetrics(std::optional<std::size_t> slots);

  /// `at`: the wall-clock time of the answer.
  void add(const KeyStatus& key, Milliseconds at);

  /// The whole exposition; call it once.
  [[nodiscard]] std::string text() &&;

 private:
  std::optional<std::size_t> slots_;
  std::vector<std::string> samples_;  ///< one text per metric
};

}  // namespace redlock::output
