#pragma once

#include <optional>
#include <string>
#include <vector>

#include "child/command.hpp"
#include "child/supervisor.hpp"
#include "engine/held_set.hpp"
#include "engine/set_waiter.hpp"
#include "output/json.hpp"
#include "run/finish.hpp"
#include "run/options.hpp"
#include "run/session.hpp"

namespace redlock::run {

/// The output of one `run`: lines for the user while it runs, and the report for --json and
/// --status-fd at its end. It chooses the words and the exit codes; it decides nothing else.
class RunReporter {
 public:
  /// Both must outlive it.
  RunReporter(Session& session, const RunOptions& options);

  // How it ended. The last of these calls counts.
  Finish not_acquired(const SetFailure& failed);
  Finish interrupted(int signal);
  Finish fresh(const std::vector<Lease>& leases, const SetReleaseResult& released);
  Finish not_recordable();
  Finish not_started(const child::ExecFailure& failure);
  Finish too_late_to_start();
  Finish unconfirmed();
  Finish ended();

  /// What happened to the lease at the end. `expire_in`: it is left to expire after that time.
  Finish released(const HeldSet& leases, const SetReleaseResult& released, Finish finish,
                  Duration expire_in);

  // While it runs.
  void waited(Duration span) { report_.waited = span; }
  void gave_up_turn() const;
  void acquired() { report_.acquired_at = session_.clock().wall(); }
  void granted(const std::vector<Lease>& leases);
  void started() { report_.started_at = session_.clock().wall(); }
  void extended(bool after_trouble);
  void in_trouble(const Resource& resource, const LeaseInTrouble& trouble);
  void lost(const Resource& resource, const LeaseEnded& end);
  void stopping(const child::Delay& delay);
  void timed_out();  ///< at the end of --max-hold
  void strained(const StopCost& cost, Duration needed) const;
  void unkillable(const std::vector<pid_t>& pids) const;
  void outlasting(const std::vector<pid_t>& nested_runs) const;
  void command_ended(const child::Ending& ending, Duration held);

  /// The owner record for as long as the lease is kept after the command's end; nothing when it is
  /// not kept.
  [[nodiscard]] std::optional<Owner> finished_owner(Duration expire_in) const;

  /// What the servers are to remember of the run. `ended`: when the command did.
  [[nodiscard]] RunRecord run_record(Instant ended) const;

  /// Whether there never was a lease, so that servers need not be waited for.
  [[nodiscard]] bool was_granted() const noexcept { return !report_.leases.empty(); }

  /// The report as one line of JSON; also to stderr, with --json.
  std::string tell(const Finish& finish);

 private:
  Finish conclude(output::CommandResult result, std::string message);
  void say() const;
  void tell_loss();
  void stopping_for_the_lease() const;
  void tell_missing_votes();
  void tell_unrecorded() const;
  [[nodiscard]] bool is_known_to_be_lost() const;

  Session& session_;
  const RunOptions& options_;
  std::string key_;
  output::RunReport report_;
  std::string trouble_;           ///< why the last round failed; empty when it did not
  std::string missing_votes_;     ///< as last reported
  std::optional<Resource> lost_;  ///< which of the keys, until it is reported
  child::Ending ending_;
};

}  // namespace redlock::run
