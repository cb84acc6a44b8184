#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "output/json.hpp"
#include "output/table.hpp"

namespace redlock::output {

/// What `status` found out: the locks, and what could not be read.
struct StatusReport {
  std::vector<KeyStatus> keys;
  std::vector<ServerFault> faults;         ///< of listing, or of the first key
  std::vector<ServerFault> skipped;        ///< keys that may be locks, too, but could not be read
  Milliseconds at{};                       ///< the wall clock's time
  std::optional<std::string> other_key{};  ///< where no lock is listed: a key of another client
};

/// How to show it.
struct StatusView {
  bool listed = true;                  ///< a row for each lock; else a paragraph for each key
  bool verbose = false;                ///< with a paragraph below each row
  std::size_t servers = 1;             ///< how many are configured
  std::optional<std::size_t> slots{};  ///< how many each lock has; else as many as its holders say
};

struct TakenSlots {
  std::size_t taken;
  std::size_t limit;  ///< how many there are; zero: not known
};

/// Of a lock that is shared in slots; nothing: it is not. `slots`: how many it has, if that is
/// given; else as many as its holders say.
std::optional<TakenSlots> taken_slots(const LockParties& parties, std::optional<std::size_t> slots);

/// `status` for people, folded to `width` columns: what could not be read, and totals, last.
std::string status_text(const StatusReport& report, const StatusView& view, std::size_t width);

/// `status --watch`: the lines of one screen of exactly this size or smaller. At the top the clock,
/// the totals and what could not be read; then as many whole locks as fit, and how many do not.
std::vector<std::string> status_screen(const StatusReport& report, const StatusView& view,
                                       Duration interval, std::size_t rows, std::size_t columns);

}  // namespace redlock::output
