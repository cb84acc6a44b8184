#pragma once

#include <asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/held_lease.hpp"
#include "engine/lease_keeper.hpp"

namespace redlock {

/// Events of the leases of a set while they are kept.
struct SetEvents {
  std::function<void(bool after_trouble)> extended;  ///< one of them; deadline() may have moved
  std::function<void(const Resource& resource, const LeaseInTrouble&)> in_trouble;
  /// One of them ended, and the set with it; once.
  std::function<void(const Resource& resource, const LeaseEnded&)> ended;
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
  /// `server_set` must outlive the executor's run().
  explicit HeldSet(ServerSet& server_set) : server_set_(server_set) {}

  void add(const Lease& lease);

  /// Keeps them alive in the background until release(), including those that are added later. When
  /// one ends, the others are kept until the command that runs under them is stopped. A second call
  /// replaces the events; if `ended` has happened before, it is reported at once.
  void keep(SetEvents events);

  /// In the order in which they were added. Their deadlines are those of the grant.
  [[nodiscard]] const std::vector<Lease>& leases() const noexcept { return leases_; }

  /// The earliest deadline. The set must not be empty.
  [[nodiscard]] Instant deadline() const;

  /// Whether one of them has ended.
  [[nodiscard]] bool lost() const noexcept { return ended_.has_value(); }

  /// One round for each, with a new ttl from now on. The result is the first that was not
  /// confirmed, or else the last.
  asio::awaitable<ExtendResult> extend();

  /// Compare-and-delete of our own leases; see HeldLease::release. They are sent the last first,
  /// without waiting for answers between them: a silent server delays all of them no longer than
  /// one. Call it once, and nothing after it. Without a run of its own each passes on its
  /// Lease::fresh.
  asio::awaitable<SetReleaseResult> release(bool by_hand, Duration expire_in = Duration::zero(),
                                            std::optional<Owner> finished = std::nullopt,
                                            std::optional<RunRecord> run = std::nullopt);

 private:
  struct Member;
  struct Ended {
    Resource resource;
    LeaseEnded event;
  };

  void start(const std::shared_ptr<Member>& member);
  asio::awaitable<void> keep_alive(std::shared_ptr<Member> member);

  ServerSet& server_set_;
  std::vector<Lease> leases_;
  std::vector<std::shared_ptr<Member>> members_;
  std::optional<SetEvents> events_;  ///< empty: not kept
  std::optional<Ended> ended_;
  bool over_ = false;
};

}  // namespace redlock
