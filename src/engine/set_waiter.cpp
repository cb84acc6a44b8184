#include "engine/set_waiter.hpp"

#include <algorithm>

#include "engine/inherited_lease.hpp"

namespace redlock {

SetWaiter::SetWaiter(ServerSet& server_set, std::vector<AcquireOrder> orders, WaitPolicy policy,
                     Interrupt& interrupt)
    : server_set_(server_set),
      orders_(std::move(orders)),
      policy_(policy),
      interrupt_(interrupt),
      began_(server_set.clock().now()),
      set_(std::make_shared<HeldSet>(server_set)) {}

asio::awaitable<std::variant<std::shared_ptr<HeldSet>, SetFailure>> SetWaiter::next() {
  for (;;) {
    // A guarded parent lease is checked before every attempt, and so is one that no quorum has told
    // of yet: otherwise we would wait for ourselves.
    const auto& parent_claim = current().parent_claim;
    if (parent_claim && (!waiter_ || parent_claim->guarded || parent_unanswered_)) {
      Inheritance inheritance = co_await inherit(server_set_, current());
      parent_unanswered_ = inheritance.unanswered;
      parent_faults_ = std::move(inheritance.faults);
      if (inheritance.too_short || inheritance.too_weak) {
        AttemptFailure why{};
        why.why = inheritance.too_weak ? AttemptFailure::Why::parent_too_weak
                                       : AttemptFailure::Why::parent_too_short;
        SetFailure failure{current().resource, std::move(why), true};
        co_await release_held();
        co_return failure;
      }
      if (inheritance.lease) {
        waiter_.reset();
        if (co_await complete_with(*inheritance.lease)) co_return set_;
        continue;
      }
    }
    if (!waiter_) waiter_.emplace(server_set_, current(), remaining_policy(), interrupt_);
    auto step = co_await waiter_->next();
    if (auto* waiting = std::get_if<StillWaiting>(&step)) {
      blame_silence(waiting->failure);
      SetFailure failure{current().resource, std::move(waiting->failure), false};
      co_return failure;
    }
    waiter_.reset();
    if (auto* gave_up = std::get_if<GaveUp>(&step)) {
      blame_silence(gave_up->failure);
      SetFailure failure{current().resource, std::move(gave_up->failure), true};
      co_await release_held();
      co_return failure;
    }
    if (co_await complete_with(std::get<Lease>(step))) co_return set_;
  }
}

asio::awaitable<void> SetWaiter::give_up() {
  waiter_.reset();
  co_await release_held();
}

/// A lock that only our own parent lease holds is not busy: it is ours, had a quorum said so.
void SetWaiter::blame_silence(AttemptFailure& failure) const {
  const bool by_parent =
      parent_unanswered_ && failure.holder && failure.holder->id == current().parent_claim->id;
  if (!by_parent) return;
  failure.why = AttemptFailure::Why::unavailable;
  failure.faults = parent_faults_;
}

/// Adds the lease of the current order. True when the set is complete and good.
asio::awaitable<bool> SetWaiter::complete_with(Lease lease) {
  set_->add(lease);
  if (set_->leases().size() < orders_.size()) {
    set_->keep({[](bool) {}, [](const Resource&, const LeaseInTrouble&) {},
                [](const Resource&, const LeaseEnded&) {}});
    co_return false;
  }
  if (is_good()) co_return true;
  co_await release_held();
  co_return false;
}

WaitPolicy SetWaiter::remaining_policy() const {
  WaitPolicy policy = policy_;
  if (policy.wait)
    policy.wait = std::max(Duration::zero(), *policy.wait - (server_set_.clock().now() - began_));
  return policy;
}

/// A lease that was acquired long before the others may have ended by now.
bool SetWaiter::is_good() const {
  return !set_->lost() &&
         server_set_.clock().now() + orders_.front().needed_validity < set_->deadline();
}

asio::awaitable<void> SetWaiter::release_held() {
  if (set_->leases().empty()) co_return;
  (void)co_await set_->release(/*by_hand=*/false);
  set_ = std::make_shared<HeldSet>(server_set_);
}

}  // namespace redlock
