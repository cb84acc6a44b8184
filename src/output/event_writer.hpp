#pragma once

#include <vector>

#include "output/event.hpp"
#include "support/line_writer.hpp"

namespace redlock::output {

/// Writes a line of JSON for each event to --events-fd. Drops lines that the reader does not take
/// in time; the next line that is written reports how many.
class EventWriter final : public output::EventListener {
 public:
  /// The caller keeps `fd` open. Throws std::system_error.
  EventWriter(int fd, std::vector<Resource> resources)
      : writer_(fd), resources_(std::move(resources)) {}

  void on(const output::event::Any& event, Milliseconds at) override;

 private:
  LineWriter writer_;
  std::vector<Resource> resources_;
  std::vector<Lease> leases_;  ///< of the last Acquired event
  std::size_t dropped_ = 0;
};

}  // namespace redlock::output
