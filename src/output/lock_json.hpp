#pragma once

#include <string>
#include <vector>

#include "engine/server_set.hpp"
#include "output/key_status.hpp"

namespace redlock::output {

/// status:
/// {"command","exit_code","locks":[{"key","state","holder","awaits","shares":{"count","first":[…]},
/// "free_slot_names":[…],"waiters":{"count","first":[…]},"last","last_success","skips","runs":[…],
/// "servers":[…]}],"faults":[…]}.
/// There may be many locks, so it keeps only the text of each.
class StatusJson {
 public:
  void add(const KeyStatus& key);

  /// The whole document; call it once. `faults` are those of the servers, `skipped` lists keys that
  /// could not be read.
  [[nodiscard]] std::string text(const std::vector<ServerFault>& faults,
                                 const std::vector<ServerFault>& skipped, int exit_code) &&;

 private:
  std::string locks_;
};

}  // namespace redlock::output
