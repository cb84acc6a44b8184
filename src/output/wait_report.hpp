#pragma once

#include <map>
#include <optional>
#include <string>

#include "engine/attempt.hpp"

namespace redlock::output {

/// Describes the progress of a wait from the results of its attempts. These may be 15 s apart, so
/// ages are extrapolated. Callers pass the instants; only the time of day is read here.
class WaitReport {
 public:
  /// `servers`: how many are configured. `priority`: the waiter's. `replaces`: it has --replace.
  WaitReport(Instant began, std::size_t servers, unsigned priority = 0, bool replaces = false)
      : began_(began), servers_(servers), priority_(priority), replaces_(replaces) {}

  /// An attempt has failed, and the wait continues.
  void learn(const Resource& resource, const AttemptFailure& failure, Instant now);

  /// `waiting for demo (12s, 2nd in queue): held by …`. Where the holder's pid would come after
  /// `width` columns, the note is shortened or left out first, then the command is left out, then
  /// the host and the key are shortened; the caller cuts the rest. Empty during the first second of
  /// a wait, which is not worth reporting.
  [[nodiscard]] std::string line(Instant now, std::size_t width) const;

  /// The same for output that stays, `waiting for demo: held by …; you are 2nd in queue after 12s`.
  /// Nullopt unless there is news: another holder, or another obstacle, that has lasted for a
  /// second and was not reported within the last minute.
  std::optional<std::string> news(Instant now);

  /// The news that is to stay above line() while that is redrawn: once for each obstacle, and only
  /// if `width` columns cannot hold the whole line.
  std::optional<std::string> news_beside_line(Instant now, std::size_t width);

 private:
  struct Known {
    Resource resource;
    AttemptFailure failure;
    std::string obstacle;  ///< identifies the obstacle; empty: not worth a line
    Instant since;         ///< when this obstacle was first seen
    Instant at;            ///< when this failure was seen
  };

  void mark_reported(Instant now);
  [[nodiscard]] bool is_reportable(Instant now) const;
  [[nodiscard]] std::string obstacle_text(const AttemptFailure& failure, Instant now) const;
  [[nodiscard]] std::string queue_text() const;

  Instant began_;
  std::size_t servers_;
  unsigned priority_;
  bool replaces_;
  std::optional<Known> known_;
  std::map<std::string, Instant> reported_;  ///< when each obstacle was last reported
};

}  // namespace redlock::output
