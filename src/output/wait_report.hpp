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
  /// `servers`: how many are configured. `priority`: the waiter's.
  WaitReport(Instant began, std::size_t servers, unsigned priority = 0)
      : began_(began), servers_(servers), priority_(priority) {}

  /// An attempt has failed, and the wait continues.
  void learn(const Resource& resource, const AttemptFailure& failure, Instant now);

  /// `waiting for demo (12s, 2nd in queue): held by …`. In more than `width` columns the key is
  /// shortened first, then the note, so that the holder is shown; the caller cuts the rest. Empty
  /// during the first second of a wait, which is not worth reporting.
  [[nodiscard]] std::string line(Instant now, std::size_t width) const;

  /// The same for output that stays, `waiting for demo: held by …; you are 2nd in queue after 12s`.
  /// Nullopt unless there is news: another holder, or another obstacle, that has lasted for a
  /// second and was not reported within the last minute.
  std::optional<std::string> news(Instant now);

  /// The result of line() was shown, so it is no longer news.
  void shown(Instant now);

 private:
  struct Known {
    Resource resource;
    AttemptFailure failure;
    std::string obstacle;  ///< identifies the obstacle; empty: not worth a line
    Instant since;         ///< when this obstacle was first seen
    Instant at;            ///< when this failure was seen
  };

  [[nodiscard]] bool is_reportable(Instant now) const;
  [[nodiscard]] std::string obstacle_text(const AttemptFailure& failure, Instant now) const;
  [[nodiscard]] std::string queue_text() const;

  Instant began_;
  std::size_t servers_;
  unsigned priority_;
  std::optional<Known> known_;
  std::map<std::string, Instant> reported_;  ///< when each obstacle was last reported
};

}  // namespace redlock::output
