#pragma once

#include <string>
#include <vector>

#include "schedule.hpp"

namespace redlock::sim {

/// Some hosts start the same cron job once a day, by clocks that differ by up to 90 s:
/// `run --once-per 20h`. Jobs fail, processes are killed, hosts and servers are unreachable for
/// minutes.
/// Most schedules are small; one in sixty has forty hosts and twenty days.
Schedule draw_nightly(const Profile& profile, std::uint64_t seed);

/// The rules for these days. The world reports to it what the sessions do.
///
/// The rules, by their violations:
///
///   once    two runs that a quorum recorded as successes started within the period
///   fresh   a run was left out although no run that exited with 0 started within the period
///   daily   a day without a success, although nothing went wrong and a session waited whose job
///           would succeed
class Nights {
 public:
  explicit Nights(const Schedule& schedule) : schedule_(schedule) {}

  /// The command of this run, which started then, exited with 0.
  void ended_well(Duration started) { ended_well_.push_back(started); }
  /// A quorum released and recorded it. -> what it violates, or nullopt
  [[nodiscard]] std::string recorded(Duration started);
  /// A run was left out. -> what it violates, or nullopt
  [[nodiscard]] std::string left_out(Duration now) const;
  /// To be called at the end. -> the first day that should have a success and has none, or nullopt
  [[nodiscard]] std::string missing() const;

 private:
  const Schedule& schedule_;
  std::vector<Duration> ended_well_;
  std::vector<Duration> recorded_;
};

}  // namespace redlock::sim
