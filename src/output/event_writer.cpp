#include "output/event_writer.hpp"

#include "output/event_json.hpp"

namespace redlock::output {

void EventWriter::on(const output::event::Any& event, Milliseconds at) {
  if (const auto* acquired = std::get_if<output::event::Acquired>(&event))
    leases_ = acquired->leases;
  const std::string line = output::event_json(event, {resources_, leases_, at, dropped_});
  if (line.empty()) return;
  if (writer_.write(line + "\n")) {
    dropped_ = 0;
  } else {
    ++dropped_;
  }
}

}  // namespace redlock::output
