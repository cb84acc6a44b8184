#pragma once

#include <asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/held_lease.hpp"
#include "engine/lease_keeper.hpp"

namespace redlock {

/// What becomes of the leases of a set while they are kept.
struct SetEvents {
  std::function<void(bool after_trouble)> extended;  ///< one of them; deadline() has moved, or not yet
  std::function<void(const Resource& resource, const LeaseInTrouble&)> in_trouble;
  std::function<void(const Resource& resource, const LeaseEnded&)> ended;  ///< one of them is over, and the set with it; once
};

/// How the release of a set ended: as the worst of its leases.
struct SetReleaseResult {
  Resource resource;  ///< whose release ended so
  ReleaseResult result;
};

/// Several leases that count as one: good while all of them are. Usually it is one. What becomes of each is a matter of its keeping.
class HeldSet : public std::enable_shared_from_this<HeldSet> {
 public:
  /// `server_set` must outlive the executor's run().
  explicit HeldSet(ServerSet& server_set) : server_set_(server_set) {}

  void add(const Lease& lease);

  /// Keeps them alive in the background until release() is called, and those that are added later, too; the others also when one is over,
  /// until whoever runs under them is stopped. Called again it
  /// replaces the events; `ended` is told at once when it has happened before.
  void keep(SetEvents events);

  /// In the order in which they were added; their deadlines are those of the grant.
  [[nodiscard]] const std::vector<Lease>& leases() const noexcept { return leases_; }

  /// The earliest; none may be empty.
  [[nodiscard]] Instant deadline() const;

  /// Whether one of them was found to be over.
  [[nodiscard]] bool lost() const noexcept { return ended_.has_value(); }

  /// One round for each: a new ttl from now on. What does not confirm it shows in the result: the first such, or the last.
  asio::awaitable<ExtendResult> extend();

  /// Compare-and-delete of those that are our own, the last first; see HeldLease::release. Once, and nothing after it.
  asio::awaitable<SetReleaseResult> release(bool by_hand, Duration keep = Duration::zero(), std::optional<Owner> finished = std::nullopt);

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
