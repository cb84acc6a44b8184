#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "virtual/timeline.hpp"

namespace redlock::sim {

/// The events of a schedule, as readable lines. Costs nothing while it is off.
class History {
 public:
  History(const Timeline& timeline, bool on) : timeline_(timeline), on_(on) {}

  [[nodiscard]] bool on() const noexcept { return on_; }

  template <class... Parts>
  void add(fmt::format_string<Parts...> text, Parts&&... parts) {
    if (on_) write(fmt::format(text, std::forward<Parts>(parts)...));
  }

  [[nodiscard]] const std::vector<std::string>& lines() const noexcept { return lines_; }

 private:
  void write(const std::string& line);

  const Timeline& timeline_;
  bool on_;
  std::vector<std::string> lines_;
};

/// A true time or a span, in milliseconds.
double in_ms(Duration span);

}  // namespace redlock::sim
