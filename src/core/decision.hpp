#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "core/vote.hpp"

namespace redlock {

/// Turns votes into a decision, as soon as it is certain whatever the missing votes will be
/// (PROTOCOL R1, R8).
/// Pure: uses neither clocks nor servers. `servers` is always the number of *configured* servers.

/// The smallest number of servers of which any two sets overlap: floor(servers / 2) + 1, also for
/// even numbers.
constexpr std::size_t quorum_of(std::size_t servers) {
  return servers / 2 + 1;
}

/// The smallest number of servers for which a restart guard makes sense. Of two, both must grant,
/// so one that forgot a lock changes nothing. With a single server a guard would prevent no harm,
/// but lock out every client for a while after each restart.
inline constexpr std::size_t min_guarded_servers = 3;

/// How long a server with this uptime still has no vote under the restart guard (PROTOCOL R7);
/// nothing: it has one.
std::optional<Duration> guard_left(Duration up, Duration restart_guard);

/// How an acquire stands, or why it gave no lock: one enum, from the votes of an attempt to the
/// exit code of the command (output/outcome.hpp).
enum class AcquireDecision {
  // By the votes of one attempt: AcquireTally.
  undecided,
  granted,        ///< a quorum granted it
  busy,           ///< one other lease has a quorum: certainly held
  maybe_busy,     ///< one other lease would have a quorum if all silent servers had it: held, or an
                  ///< attempt that also failed
  split,          ///< servers answered, but no other lease can have a quorum: simultaneous attempts
  unavailable,    ///< no quorum of servers answered with a vote
  denied,         ///< so many servers deny us that no quorum is left
  misconfigured,  ///< so many servers are not what we were told that no quorum is left
  duplicate,      ///< two of the configured servers are the same one
  guarded,        ///< a quorum granted it, but some of them restarted so recently that their votes
                  ///< do not count (R7)

  // Not by votes. Each comment begins with who decides.
  too_slow,          ///< the attempt: granted, but the answers took so long that too little of the
                     ///< lease was left
  interrupted,       ///< the attempt: its caller gave up
  parent_too_weak,   ///< the wait: the parent lease is shared, and the order wants more
  parent_too_short,  ///< the wait: the parent lease ends too soon for the order
  held_around_us,    ///< the command: its holder, which waits for us to end, is an ancestor of ours
  queue_full,        ///< the wait: as many wait already as are to (--max-waiting)
  stopped,           ///< the wait: the holder of a lock that it has by now was asked to stop
  superseded,        ///< the attempt: a newer waiter took our place; or the wait: one may have come
                     ///< and gone
};

/// A server that granted, but restarted so recently that it may have forgotten another client's
/// lease.
struct RestartedServer {
  std::size_t server;
  Duration up;    ///< since its start
  Duration left;  ///< until its vote counts
};

/// The votes of one attempt to acquire.
class AcquireTally {
 public:
  /// `restart_guard`: grants of servers that started within it do not count (PROTOCOL R7); zero:
  /// all do.
  explicit AcquireTally(std::size_t servers, Duration restart_guard = Duration::zero());

  /// Counts a vote; a second vote of the same server replaces the first. With a restart guard, a
  /// grant without the server's uptime counts as a denial.
  void count(std::size_t server, AcquireVote vote);

  /// "undecided" while missing votes could still make a quorum of grants, or a quorum but for the
  /// guard, and there is no duplicate. Never undecided when every vote is in.
  /// A failure is classified by the votes that are in. A missing vote never counts as silent, but
  /// "unavailable" needs certainty: even the missing votes would not make a quorum of answers.
  /// Later votes may refine the kind of failure, never undo it.
  [[nodiscard]] AcquireDecision decision() const;

  /// The grants that count: not those of restarted servers; where servers granted different slots,
  /// only those of the slots that most servers granted.
  [[nodiscard]] std::size_t grants() const;

  /// The slots that most servers granted, as one set; of several such sets, the lowest.
  [[nodiscard]] Slots slots() const;

  /// The servers whose grants do not count yet, the oldest first: those that would make a quorum
  /// when decision() is guarded.
  [[nodiscard]] std::vector<RestartedServer> restarted() const;

  /// The largest fence among the grants; the lease's fence once decision() is granted.
  [[nodiscard]] Fence fence() const;

  /// Servers that granted with a counter below `fence`: their counters must be raised before the
  /// lease counts (R6).
  [[nodiscard]] std::vector<std::size_t> granted_below(Fence fence) const;

  /// The other lease with the most votes (of several, the one that the first server shows), for
  /// messages; nullptr when there is none.
  [[nodiscard]] const Holder* main_holder() const;

  /// What the servers that granted remember of earlier runs.
  [[nodiscard]] std::vector<LastRuns> runs() const;

  /// Every vote so far, by server; nullptr: missing.
  [[nodiscard]] const AcquireVote* vote_of(std::size_t server) const;

 private:
  /// The grant, if it counts with the others of these slots; nullptr otherwise.
  [[nodiscard]] const Granted* as_counted(const std::optional<AcquireVote>& vote,
                                          const Slots& slots) const;

  std::vector<std::optional<AcquireVote>> votes_;
  Duration restart_guard_;
};

enum class ExtendDecision {
  undecided,
  confirmed,        ///< a quorum extended it: the deadline moves
  lost,             ///< so many say "not yours" that no quorum is left
  too_few_answers,  ///< neither: try again while there is time
};

/// The votes of one round of extending.
class ExtendTally {
 public:
  explicit ExtendTally(std::size_t servers);

  /// A second vote of the same server replaces the first. If one process gave votes under several
  /// names, only the first counts: an address may have moved to another of the servers since the
  /// lease was granted.
  void count(std::size_t server, ExtendVote vote);

  [[nodiscard]] ExtendDecision decision() const;
  [[nodiscard]] const ExtendVote* vote_of(std::size_t server) const;

 private:
  std::vector<std::optional<ExtendVote>> votes_;
};

enum class ReleaseDecision {
  released,     ///< a quorum released it
  not_ours,     ///< so many say "not yours" that we had no quorum any more
  supervised,   ///< a living `run` holds it
  unavailable,  ///< no quorum of answers: a lease that could not be released expires by itself
};

/// The end of a release, from one vote of every server (a missing answer is a Fault).
/// released: released votes >= quorum. not_ours: servers - not-ours < quorum. Otherwise
/// unavailable.
ReleaseDecision decide_release(const std::vector<ReleaseVote>& votes);

/// Whether a quorum remembers the run that ended with the release. Each did so under its lease, and
/// a later lease has the grant of one of them.
bool is_recorded(const std::vector<ReleaseVote>& votes);

/// The lease that a quorum of servers broke; nullptr: none.
const Holder* broken_by_quorum(const std::vector<BreakVote>& votes);

enum class InspectState {
  free,         ///< a quorum has nothing under the key
  held,         ///< one lease has a quorum
  partly_held,  ///< a quorum answered; neither free nor one lease on a quorum (remains of an
                ///< attempt, a split, or an attempt under way)
  unavailable,  ///< no quorum of answers
};

/// The votes with one for each process: what an address leads to that another one of the servers
/// leads to as well counts as a fault.
std::vector<InspectVote> without_duplicates(std::vector<InspectVote> votes);

/// What a set of inspections says about the resource, and the lease with the most votes, if any.
struct Inspection {
  InspectState state = InspectState::unavailable;
  std::optional<Holder> holder;
  LockParties parties;  ///< from the server that knows of the most
  LastRuns runs{};
  std::vector<LastRuns> runs_by_server{};  ///< of those that answered
};
Inspection summarize(const std::vector<InspectVote>& votes);

/// Whether no quorum can have this lease any more: the servers that show it, and those that gave no
/// answer, are none (PROTOCOL R12). A lease that --min-hold keeps is gone: no process has it.
bool is_gone(const std::vector<InspectVote>& votes, const LeaseId& id);

/// How many of the slots below `slots` are free on a quorum.
std::size_t free_slots(const std::vector<InspectVote>& votes, std::size_t slots);

}  // namespace redlock
