#pragma once

#include <map>
#include <optional>
#include <string>

#include "engine/attempt.hpp"

namespace redlock::run {

/// What there is to tell of a wait, from what its attempts brought to light: they may be 15 s apart, so ages are reckoned on from then.
/// Instants come in; the time of day alone is looked up.
class WaitReport {
 public:
  /// `servers`: how many are configured.
  WaitReport(Instant began, std::size_t servers) : began_(began), servers_(servers) {}

  /// An attempt has failed, and the wait goes on.
  void learn(const Resource& resource, const AttemptFailure& failure, Instant now);

  /// `waiting for demo (12s, 2nd in queue): held by …`: what must not be missed first, since a terminal may have no room for the rest.
  /// Empty while there is nothing to tell: a wait of less than a second is none.
  [[nodiscard]] std::string line(Instant now) const;

  /// The same for where lines stay, `waiting for demo: held by …; 2nd in queue, for 12s`; nothing unless there is news: another holder, or
  /// another obstacle, that stood in the way for a second, and that was not told within the last minute.
  std::optional<std::string> news(Instant now);

  /// What line() tells was shown: it is no news.
  void shown(Instant now);

 private:
  struct Known {
    Resource resource;
    AttemptFailure failure;
    std::string obstacle;  ///< by which what is told is known again
    Instant since;         ///< of the obstacle
    Instant at;            ///< of the failure
  };

  [[nodiscard]] bool has_something(Instant now) const;
  [[nodiscard]] std::string obstacle_text(Instant now) const;
  [[nodiscard]] std::string queue_text() const;

  Instant began_;
  std::size_t servers_;
  std::optional<Known> known_;
  std::map<std::string, Instant> told_;  ///< by obstacle
};

}  // namespace redlock::run
