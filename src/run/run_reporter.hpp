#pragma once

#include <optional>
#include <string>
#include <vector>

#include "child/command.hpp"
#include "child/supervisor.hpp"
#include "engine/held_set.hpp"
#include "engine/waiter.hpp"
#include "output/json.hpp"
#include "run/finish.hpp"
#include "run/options.hpp"
#include "run/session.hpp"

namespace redlock::run {

/// The output of one `run`: lines for the user while it runs, and the report for --json and
/// --status-fd at its end. It chooses the words and the exit codes; it decides nothing else.
/// What it is told by `note_…` waits for the report, by `report_…` the user learns of it at once,
/// and `conclude_…` says how the run ends.
class RunReporter {
 public:
  /// Both must outlive it.
  RunReporter(Session& session, const RunOptions& options);

  // --- Before the command runs, in this order; again from the first on, after a turn given up ---

  /// The wait has ended, with the locks or without. `span`: since the run began.
  void note_waited(Duration span) { report_.waited = span; }

  /// The last lock was granted, and the command is to run under them.
  void note_acquired() { report_.acquired_at = session_.clock().wall(); }

  /// The job is paused: the locks were released, and the run waits for them again.
  void report_turn_given_up() const;

  /// The front process lets the command start.
  void report_granted(const std::vector<Lease>& leases);

  /// The command was started.
  void note_started() { report_.started_at = session_.clock().wall(); }

  // --- While it runs ---

  /// A quorum confirmed a renewal.
  void report_extended(bool after_trouble);

  /// A round of renewal found no quorum.
  void report_trouble(const Resource& resource, const LeaseInTrouble& trouble);

  /// The lease is lost: before the supervisor knows, so that the stop signal is sent first.
  void note_lost(const Resource& resource, const LeaseEnded& end);

  /// The stop signal was sent because of the lease.
  void report_stopping(const child::Delay& delay);

  /// The stop signal was sent, or is about to be, at the end of --max-hold.
  void report_max_hold();

  /// Stopping the command may take longer than the ttl leaves; once.
  void report_strained(const StopCost& cost, Duration needed) const;

  /// These processes survive KILL: after a second, then every minute.
  void report_unkillable(const std::vector<pid_t>& pids) const;

  // --- Behind it ---

  /// The command has ended, and what is to be stopped with it was stopped. `held`: since the last
  /// lock was granted.
  void report_command_ended(const child::Ending& ending, Duration held);

  /// A signal ended the command; these processes of its group have not ended yet.
  void report_awaiting(const std::vector<pid_t>& pids) const;

  /// Nested runs go on, and the lease with them; before they are waited for.
  void report_outlasting(const std::vector<pid_t>& nested_runs) const;

  /// The owner record for as long as the lease lasts after the command's end; nothing when it is
  /// released at once. Before the release.
  [[nodiscard]] std::optional<Owner> finished_owner(Duration expire_in) const;

  /// What the servers are to remember of the run. `ended`: when the command did. Before the
  /// release.
  [[nodiscard]] RunRecord run_record(Instant ended) const;

  // --- How it ends. One of these, where it is known; of several the last counts ---

  Finish conclude_not_acquired(const WaitFailure& failed);
  Finish conclude_interrupted(int signal);
  Finish conclude_fresh(const std::vector<Lease>& leases, const SetReleaseResult& released);
  Finish conclude_refused(std::string why);  ///< an option cannot be had under these leases
  Finish conclude_not_started(const child::ExecFailure& failure);
  Finish conclude_too_late();
  Finish conclude_guard_killed(child::Guard which);  ///< before the command was started
  Finish conclude_unkillable();
  Finish conclude_ended();

  /// What became of the lease, behind one of those above; may change how the run ends.
  /// `expire_in`: it is left to expire after that time.
  Finish conclude_released(const HeldSet& leases, const SetReleaseResult& released, Finish finish,
                           Duration expire_in);

  /// What the command has left running; after the release.
  void report_left(const std::vector<pid_t>& left);

  // --- At the end ---

  /// Tells of an end without the locks; where they were granted, nothing. Before write_report().
  void report_not_acquired(const Finish& finish);

  /// Whether there was a lease: then the servers have been asked to release it, and answered or
  /// not.
  [[nodiscard]] bool was_granted() const noexcept { return !report_.leases.empty(); }

  /// The report as one line of JSON, for --status-fd; writes it to stderr, too, with --json. Empty
  /// when neither is set. Once, as the last.
  std::string write_report(const Finish& finish);

 private:
  Finish conclude(output::CommandResult result, std::string message);
  void say() const;
  void tell_left(const std::string& text) const;
  void report_loss();
  void report_stopping_for_lease() const;
  void report_missing_votes();
  void report_unrecorded() const;
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
