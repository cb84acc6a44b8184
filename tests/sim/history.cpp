#include "history.hpp"

namespace redlock::sim {

void History::write(const std::string& line) {
  lines_.push_back(fmt::format("{:11.3f} ms  {}", in_ms(timeline_.now()), line));
}

double in_ms(Duration span) {
  return std::chrono::duration<double, std::milli>(span).count();
}

}  // namespace redlock::sim
