#pragma once

#include <vector>

#include "output/event.hpp"
#include "support/line_writer.hpp"

namespace redlock::run {

/// --events-fd: a line of JSON for each event. What the reader does not take in time is dropped,
/// and the next line that gets through tells how much that was.
class EventWriter final : public output::EventListener {
 public:
  /// `fd` is the caller's. Throws std::system_error.
  EventWriter(int fd, std::vector<Resource> resources)
      : writer_(fd), resources_(std::move(resources)) {}

  void on(const output::event::Any& event, Milliseconds at) override;

 private:
  LineWriter writer_;
  std::vector<Resource> resources_;
  std::vector<Lease> leases_;  ///< once they are granted
  std::size_t dropped_ = 0;
};

}  // namespace redlock::run
