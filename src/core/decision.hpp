#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "core/vote.hpp"

namespace redlock {

/// Turns votes into a decision as soon as the missing votes can no longer change it (PROTOCOL R1,
/// R8). Pure: uses neither clocks nor servers. `servers` is always the number of *configured*
/// servers.

/// The smallest number of servers of which any two sets overlap: floor(servers / 2) + 1, also for
/// even numbers.
constexpr std::size_t quorum_of(std::size_t servers) {
  return servers / 2 + 1;
}

/// The smallest number of servers for which a restart guard makes sense. Of two, both must grant,
/// so one that forgot a lock changes nothing. With a single server a guard would prevent no harm,
/// but lock out every client for a while after each restart.
inline constexpr std::size_t min_guarded_servers = 3;

/// Which lasting kind of fault leaves no quorum, by how many servers have each: `denied`,
/// `misconfigured`, or `denied` if only both together do; nullopt: neither.
std::optional<FaultKind> lasting_obstacle(std::size_t denied, std::size_t misconfigured,
                                          std::size_t servers);

/// The fence of a lease that servers show with these fences: the one that a quorum shows (PROTOCOL
/// R6), else the largest, because a server that granted the lease late may have another; nullopt:
/// none shows one.
std::optional<Fence> fence_of(const std::vector<Fence>& shown, std::size_t servers);

/// How much longer the restart guard withholds the vote of a server with this uptime (PROTOCOL R7);
/// nullopt if the server may vote.
std::optional<Duration> guard_remaining(Duration up, Duration restart_guard);

/// The state of an acquire, or the reason why it failed. One enum serves from the votes of an
/// attempt to the exit code of the command (output/outcome.hpp).
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
  misconfigured,  ///< so many servers cannot serve this configuration that no quorum is left
  duplicate,      ///< two of the configured servers are the same one
  guarded,        ///< a quorum granted it, but some of them restarted so recently that their votes
                  ///< do not count (R7)

  // Not by votes. Each comment names the part that decides: the attempt, the wait or the command.
  too_slow,         ///< attempt: granted, but too late: too little of the lease was left
  interrupted,      ///< attempt: its caller gave up
  parent_too_weak,  ///< wait: the order needs more than the share that the parent lease is
  held_around_us,   ///< command: the holder is an ancestor of ours, and waits for us to end
  queue_full,       ///< wait: the queue already has --max-waiting waiters
  stopped,          ///< wait: a stop request came for a lock that it had already acquired
  superseded,       ///< attempt: a newer waiter superseded us. Wait: a newer waiter may have
                    ///< superseded us, but no server remembers it any longer
  dismissed,        ///< attempt: `stop --waiting` sent us away
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

  /// `undecided` while there is no duplicate and the missing votes could still complete a quorum of
  /// grants, whether or not the restart guard counts them. Never undecided once every vote is in.
  ///
  /// A failure is classified by the votes that are in. A missing vote never counts as silent, but
  /// `unavailable` is only returned if the missing votes could not complete a quorum of answers.
  /// Later votes may refine the kind of failure, but never turn it into a grant.
  [[nodiscard]] AcquireDecision decision() const;

  /// The number of grants that count. Grants of recently restarted servers do not. If servers
  /// granted different slots, only the grants of the most frequent set count.
  [[nodiscard]] std::size_t grants() const;

  /// The slots that most servers granted, as one set; of several such sets, the lowest.
  [[nodiscard]] Slots slots() const;

  /// The servers whose grants do not count yet, the longest-running first: just those that would
  /// complete the quorum when decision() is `guarded`.
  [[nodiscard]] std::vector<RestartedServer> restarted() const;

  /// The largest fence among the grants; the lease's fence once decision() is granted.
  [[nodiscard]] Fence fence() const;

  /// Servers that granted with a counter below `fence`: their counters must be raised before the
  /// lease counts (R6).
  [[nodiscard]] std::vector<std::size_t> granted_below(Fence fence) const;

  /// The other lease with the most votes, for messages; among equals, the one that the first server
  /// shows. nullptr if there is none.
  [[nodiscard]] const Holder* main_holder() const;

  /// The earlier runs that the granting servers remember.
  [[nodiscard]] std::vector<LastRuns> runs() const;

  /// The vote of this server; nullptr if it is missing.
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
  lost,             ///< so many servers no longer have the lease that no quorum is left
  too_few_answers,  ///< neither: retry while there is time
};

/// Whether a lease still has a quorum, by how many servers have it, do not have it, and have not
/// voted yet.
ExtendDecision decide_extension(std::size_t standing, std::size_t gone, std::size_t missing,
                                std::size_t servers);

/// The votes of one round of extending.
class ExtendTally {
 public:
  explicit ExtendTally(std::size_t servers);

  /// A second vote of the same server replaces the first. If one process voted under several names,
  /// only its first vote counts: an address may have moved to another configured server since the
  /// lease was granted.
  void count(std::size_t server, ExtendVote vote);

  [[nodiscard]] ExtendDecision decision() const;
  [[nodiscard]] const ExtendVote* vote_of(std::size_t server) const;

 private:
  std::vector<std::optional<ExtendVote>> votes_;
};

enum class ReleaseDecision {
  released,     ///< a quorum released it
  not_ours,     ///< so many servers did not have the lease that it no longer had a quorum
  supervised,   ///< a living `run` holds it
  unavailable,  ///< no quorum of answers: a lease that could not be released expires by itself
};

/// The result of a release, from one vote of every server (a missing answer is a Fault).
/// `released` if a quorum released the lease; `not_ours` if the servers that did not reply NotOurs
/// are no quorum; otherwise `unavailable`.
ReleaseDecision decide_release(const std::vector<ReleaseVote>& votes);

/// Whether a quorum released the lease now, or shows by a tombstone that it was released by hand
/// before (R9). Servers where it was broken by force do not count.
bool was_released(const std::vector<ReleaseVote>& votes);

/// Whether a quorum remembers the run that ended with the release. Each of these servers recorded
/// it while it had the lease, so any later lease has a grant from at least one of them.
bool is_recorded(const std::vector<ReleaseVote>& votes);

/// The lease that a quorum of servers broke; nullptr if there is none.
const Holder* broken_by_quorum(const std::vector<BreakVote>& votes);

enum class InspectState {
  free,         ///< a quorum has no value under the key
  held,         ///< one lease has a quorum
  partly_held,  ///< a quorum answered; neither free nor one lease on a quorum (remains of an
                ///< attempt, a split, or an attempt under way)
  unavailable,  ///< no quorum of answers
};

/// The votes, with only one for each process. If several addresses lead to the same process, the
/// later ones get a fault instead of a vote.
std::vector<InspectVote> without_duplicates(std::vector<InspectVote> votes);

/// The state of a resource according to all servers, and the lease with the most votes, if any.
struct Inspection {
  InspectState state = InspectState::unavailable;
  std::optional<Holder> holder;
  LockParties parties;  ///< from the server that knows of the most parties
  LastRuns runs{};
  std::vector<LastRuns> runs_by_server{};  ///< only of the servers that answered
};
Inspection summarize(const std::vector<InspectVote>& votes);

/// Whether this lease can no longer have a quorum: the servers that show it and those that did not
/// answer are too few (PROTOCOL R12). A lease that only --min-hold keeps counts as gone, since no
/// process holds it.
bool is_gone(const std::vector<InspectVote>& votes, const LeaseId& id);

/// Whether a quorum may show that processes use the lease.
bool may_have_users(const std::vector<InspectVote>& votes, const LeaseId& id);

/// Which of the slots 0 to `slots` - 1 are free on a quorum; of slots with names, their positions
/// in InspectScope::slot_names.
Slots free_slots(const std::vector<InspectVote>& votes, std::size_t slots);

}  // namespace redlock
