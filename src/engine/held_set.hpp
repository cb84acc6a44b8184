#pragma once

#include <asio/awaitable.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/lease_keeper.hpp"

namespace redlock {

/// A stop request, and the lock whose holder it is for.
struct StopRequested {
  Resource resource;
  StopRequest request;
};

/// Events of the leases of a set while they are kept.
struct SetEvents {
  /// A quorum confirmed one of the leases; deadline() may have moved.
  std::function<void(bool after_trouble)> extended = [](bool) {};
  std::function<void(const Resource&, const LeaseInTrouble&)> in_trouble =
      [](const Resource&, const LeaseInTrouble&) {};
  /// One of the leases ended, and the set with it. At most once.
  std::function<void(const Resource&, const LeaseEnded&)> ended = [](const Resource&,
                                                                     const LeaseEnded&) {};
  /// A stop request came for one of the leases. At most once.
  std::function<void(const StopRequested&)> stop_requested = [](const StopRequested&) {};
};

/// The result of releasing a set: the worst result of any of its leases.
struct SetReleaseResult {
  Resource resource;  ///< the resource with this result
  ReleaseResult result;
  bool recorded = false;  ///< ReleaseResult::recorded of each of our own leases, at least one
};

/// Several leases that count as one, valid while all of them are. Usually there is only one. Each
/// is extended separately.
class HeldSet : public std::enable_shared_from_this<HeldSet> {
 public:
  /// How the first lease to end did so.
  struct Ended {
    Resource resource;
    LeaseEnded event;
  };

  /// `server_set` must outlive the executor's run().
  explicit HeldSet(ServerSet& server_set) : server_set_(server_set) {}

  void add(const Lease& lease);

  /// Extends all leases in the background until release(), including those that are added later.
  /// When one ends, the others are kept until the command under them is stopped. A second call
  /// replaces the events; an end or a stop request that came before is reported again at once.
  void keep(SetEvents events);

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

  /// Compare-and-delete of our own leases, the last added first; see HeldLease::release. All are
  /// sent before any answer is awaited, so a silent server delays several leases no longer than
  /// one. Without `run`, each lease passes on its Lease::fresh. Call it once, and nothing else
  /// after it.
  asio::awaitable<SetReleaseResult> release(bool by_hand, Duration expire_in = Duration::zero(),
                                            std::optional<Owner> finished = std::nullopt,
                                            std::optional<RunRecord> run = std::nullopt);

 private:
  void start(std::size_t index);
  void note_stop_request(const Resource& resource, const StopRequest& request);
  asio::awaitable<void> keep_alive(std::size_t index);

  ServerSet& server_set_;
  std::vector<Lease> leases_;
  std::deque<LeaseKeeper> keepers_;  ///< one for each of leases_; a deque, so that none moves
  std::optional<SetEvents> events_;  ///< nullopt until keep()
  std::optional<Ended> ended_;
  std::optional<StopRequested> stop_requested_;
  bool released_ = false;
};

}  // namespace redlock
