#pragma once

#include <asio/awaitable.hpp>
#include <deque>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "engine/lease_keeper.hpp"

namespace redlock {

/// What happens to the leases of a set while they are kept.

/// A quorum confirmed one of the leases; HeldSet::deadline() may have moved.
struct SetExtended {
  bool after_trouble;  ///< rounds of this lease before this one failed
};

/// A round for one of the leases found no quorum. Reported for every such round.
struct SetInTrouble {
  Resource resource;
  LeaseInTrouble trouble;
};

/// One of the leases ended, and the set with it. At most once.
struct SetEnded {
  Resource resource;
  LeaseEnded end;
};

/// A stop request, and the lock whose holder it is for. At most once.
struct StopRequested {
  Resource resource;
  StopRequest request;
};

using SetEvent = std::variant<SetExtended, SetInTrouble, SetEnded, StopRequested>;

/// The result of releasing a set: the worst result of any of its leases.
struct SetReleaseResult {
  Resource resource;  ///< the resource with this result
  ReleaseResult result;
  bool recorded = false;       ///< ReleaseResult::recorded of each of our own leases, at least one
  bool left_to_users = false;  ///< ReleaseResult::left_to_users of any lease
  bool confirmed = false;  ///< the run had succeeded by then: a quorum confirmed all leases (L4)
};

/// Several leases that count as one, valid while all of them are. Usually there is only one. Each
/// is extended separately.
///
///     set->keep();
///     for (;;) { event = co_await set->next(); … until nullopt }
class HeldSet : public std::enable_shared_from_this<HeldSet> {
 public:
  /// `interrupt` is raised by a stop request: its holder must not wait for anything more. Both must
  /// outlive the executor's run().
  HeldSet(ServerSet& server_set, Interrupt& interrupt);

  void add(const Lease& lease);

  /// Extends all leases in the background until release(), including those that are added later.
  /// When one ends, the others are kept until the command under them is stopped.
  void keep();

  /// The next event; nullopt once the set is released. The first call begins with a stop request
  /// and an end that came before it; other events before it are forgotten. One coroutine at a time.
  asio::awaitable<std::optional<SetEvent>> next();

  /// The leases in the order in which they were added. Their deadlines are those of the grant.
  [[nodiscard]] const std::vector<Lease>& leases() const noexcept { return leases_; }

  /// The earliest deadline. The set must not be empty.
  [[nodiscard]] Instant deadline() const;

  /// When the next round for any of the leases begins. The set must not be empty.
  [[nodiscard]] Instant next_round() const;

  /// Whether a lease, and so the set, has ended, as far as we know.
  [[nodiscard]] bool lost() const noexcept { return ended_.has_value(); }

  /// The first stop request for one of the leases; nullopt if there was none.
  [[nodiscard]] const std::optional<StopRequested>& stop_requested() const noexcept {
    return stop_requested_;
  }

  /// Extends each lease in one round, with its own ttl. The result is the first that was not
  /// confirmed, or else the last.
  asio::awaitable<ExtendResult> extend();

  /// Compare-and-delete of our own leases, the last added first, and the end of our use of others;
  /// see HeldLease::release. All are sent before any answer is awaited, so a silent server delays
  /// several leases no longer than one. Without a run in the terms, each lease passes on its
  /// Lease::fresh. Call it once, and nothing else after it.
  ///
  /// If several votes decide on the release, and the run is a success that others may rely on, a
  /// round confirms all leases before (PROTOCOL L4). If one is lost, the run is not recorded as a
  /// success, and the result is `not_ours`. If no quorum answers, nothing is released: the release
  /// is left to release_unconfirmed(), and the result is `unavailable`.
  asio::awaitable<SetReleaseResult> release(ReleaseTerms terms = {});

 private:
  void start(std::size_t index);
  void note_stop_request(const Lease& lease, const StopRequest& request);
  void note(SetEvent event);
  asio::awaitable<void> keep_alive(std::size_t index);

  struct Confirmation {
    Resource resource;  ///< the resource with this result, the worst of all
    ExtendResult result;
  };
  /// Asks for all of our own leases, and those that we use, in one round that begins now. The round
  /// is repeated a few times if no quorum answers.
  asio::awaitable<Confirmation> confirm();
  /// The indices of our own leases, and of those that we are registered to use, the last added
  /// first.
  [[nodiscard]] std::vector<std::size_t> ours() const;
  [[nodiscard]] std::size_t number_of_own() const;
  void leave(ReleaseTerms terms, Instant as_of);
  [[nodiscard]] bool needs_confirmation(const RunRecord& run) const;

  ServerSet& server_set_;
  Interrupt& interrupt_;
  std::vector<Lease> leases_;
  std::deque<LeaseKeeper> keepers_;  ///< one for each of leases_; a deque, so that none moves
  bool kept_ = false;
  std::optional<SetEnded> ended_;
  std::optional<StopRequested> stop_requested_;
  std::deque<SetEvent> events_;     ///< not returned by next() yet
  std::unique_ptr<Event> changed_;  ///< notified of each of them, and of release(); null: next()
                                    ///< was not called yet
  bool released_ = false;
};

/// Confirms and releases what HeldSet::release() left to the ServerSet, with back-off, until the
/// leases have expired.
asio::awaitable<void> release_unconfirmed(ServerSet& server_set, Interrupt& interrupt);

}  // namespace redlock
