#pragma once

#include <asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "engine/held_set.hpp"
#include "engine/waiter.hpp"

namespace redlock {

/// One attempt failed; `resource` is the key it was for.
struct SetFailure {
  Resource resource;
  AttemptFailure failure;
  bool final;  ///< the wait ended without any lock; otherwise next() tries again
};

/// Acquires several locks, all or none: one after the other in the given order, with one wait for
/// all. Acquired leases are kept alive during the wait for the next lock, and released when it
/// gives up. If one is lost meanwhile, it starts over. A lock with a parent lease (ParentClaim) is
/// inherited or taken over, not acquired.
/// | Clients that sort their keys cannot deadlock with each other: none waits for a smaller key
/// than those it holds.
///
///     SetWaiter waiter(…);
///     for (;;) { step = co_await waiter.next(); if it is a set, or a final failure: done; else
///     show it }
class SetWaiter {
 public:
  /// `orders`: at least one.
  SetWaiter(ServerSet& server_set, std::vector<AcquireOrder> orders, WaitPolicy policy,
            Interrupt& interrupt);

  asio::awaitable<std::variant<std::shared_ptr<HeldSet>, SetFailure>> next();

  /// Ends the wait for a reason of the caller's: leaves the queue, and releases what is held.
  asio::awaitable<void> give_up();

 private:
  [[nodiscard]] const AcquireOrder& current() const { return orders_[set_->leases().size()]; }
  [[nodiscard]] WaitPolicy remaining_policy() const;
  [[nodiscard]] bool is_good() const;
  asio::awaitable<bool> complete_with(Lease lease);
  asio::awaitable<void> release_held();
  void blame_silence(AttemptFailure& failure) const;

  ServerSet& server_set_;
  std::vector<AcquireOrder> orders_;
  WaitPolicy policy_;
  Interrupt& interrupt_;
  Instant began_;
  std::shared_ptr<HeldSet> set_;
  std::optional<Waiter> waiter_;              ///< for the current order
  bool parent_unanswered_ = false;            ///< when the parent lease was last asked for
  std::vector<ServerFault> parent_faults_{};  ///< of those who did not answer then
};

}  // namespace redlock
