#pragma once

#include <asio/awaitable.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/lease_keeper.hpp"

namespace redlock {

/// The holder of a lease was asked to stop what runs under it.
struct StopRequested {
  Resource resource;
  StopRequest request;
};

/// Events of the leases of a set while they are kept.
struct SetEvents {
  /// A quorum confirmed one of them; deadline() may have moved.
  std::function<void(bool after_trouble)> extended = [](bool) {};
  std::function<void(const Resource&, const LeaseInTrouble&)> in_trouble =
      [](const Resource&, const LeaseInTrouble&) {};
  /// One of them ended, and the set with it; once.
  std::function<void(const Resource&, const LeaseEnded&)> ended = [](const Resource&,
                                                                     const LeaseEnded&) {};
  /// A stop request came for one of them; once.
  std::function<void(const StopRequested&)> stop_requested = [](const StopRequested&) {};
};

/// The result of releasing a set: the worst of its leases.
struct SetReleaseResult {
  Resource resource;  ///< the resource with this result
  ReleaseResult result;
  bool recorded = false;  ///< see ReleaseResult::recorded; for each of our own leases, at least one
};

/// Several leases that count as one: good while all of them are. Usually it is one. Each is kept on
/// its own.
class HeldSet : public std::enable_shared_from_this<HeldSet> {
 public:
  /// How the first of them ended.
  struct Ended {
    Resource resource;
    LeaseEnded event;
  };

  /// `server_set` must outlive the executor's run().
  explicit HeldSet(ServerSet& server_set) : server_set_(server_set) {}

  void add(const Lease& lease);

  /// Keeps them alive in the background until release(), including those that are added later. When
  /// one ends, the others are kept until the command that runs under them is stopped. A second call
  /// replaces the events; what is reported once and has happened before is reported at once.
  void keep(SetEvents events);

  /// In the order in which they were added. Their deadlines are those of the grant.
  [[nodiscard]] const std::vector<Lease>& leases() const noexcept { return leases_; }

  /// The earliest deadline. The set must not be empty.
  [[nodiscard]] Instant deadline() const;

  /// When the first of them next asks the servers. The set must not be empty.
  [[nodiscard]] Instant next_round() const;

  /// How the set ended; none: every lease stands, as far as we know.
  [[nodiscard]] bool lost() const noexcept { return ended_.has_value(); }

  /// The first stop request for one of them; none: there was none yet.
  [[nodiscard]] const std::optional<StopRequested>& stop_requested() const noexcept {
    return stop_requested_;
  }

  /// One round for each, with a new ttl from now on. The result is the first that was not
  /// confirmed, or else the last.
  asio::awaitable<ExtendResult> extend();

  /// Compare-and-delete of our own leases; see HeldLease::release. They are sent the last first,
  /// without waiting for answers between them: a silent server delays all of them no longer than
  /// one. Call it once, and nothing else after it. Without a run of its own each passes on its
  /// Lease::fresh.
  asio::awaitable<SetReleaseResult> release(bool by_hand, Duration expire_in = Duration::zero(),
                                            std::optional<Owner> finished = std::nullopt,
                                            std::optional<RunRecord> run = std::nullopt);

 private:
  void start(std::size_t index);
  void note_stop_request(const Resource& resource, const StopRequest& request);
  asio::awaitable<void> keep_alive(std::size_t index);

  ServerSet& server_set_;
  std::vector<Lease> leases_;
  std::deque<LeaseKeeper> keepers_;  ///< of each of leases_; they stay where they are
  std::optional<SetEvents> events_;  ///< empty: not kept
  std::optional<Ended> ended_;
  std::optional<StopRequested> stop_requested_;
  bool over_ = false;
};

}  // namespace redlock
