#include "engine/set_waiter.hpp"

#include <algorithm>

namespace redlock {

SetWaiter::SetWaiter(Electorate& electorate, std::vector<AcquireOrder> orders, WaitPolicy policy, Interrupt& interrupt)
    : electorate_(electorate),
      orders_(std::move(orders)),
      policy_(policy),
      interrupt_(interrupt),
      began_(electorate.clock().now()),
      set_(std::make_shared<HeldSet>(electorate)) {}

asio::awaitable<std::variant<std::shared_ptr<HeldSet>, SetFailure>> SetWaiter::next() {
  for (;;) {
    if (!waiter_) waiter_.emplace(electorate_, current(), remaining_policy(), interrupt_);
    auto step = co_await waiter_->next();
    if (auto* waiting = std::get_if<StillWaiting>(&step)) {
      SetFailure failure{current().resource, std::move(waiting->failure), false};
      co_return failure;
    }
    waiter_.reset();
    if (auto* gave_up = std::get_if<GaveUp>(&step)) {
      SetFailure failure{current().resource, std::move(gave_up->failure), true};
      co_await give_back();
      co_return failure;
    }
    set_->add(std::get<Lease>(step));
    if (set_->leases().size() < orders_.size()) {
      set_->keep({[](bool) {}, [](const Resource&, const LeaseInTrouble&) {}, [](const Resource&, const LeaseEnded&) {}});
    } else if (is_good()) {
      co_return set_;
    } else {
      co_await give_back();
    }
  }
}

WaitPolicy SetWaiter::remaining_policy() const {
  WaitPolicy policy = policy_;
  if (policy.wait) policy.wait = std::max(Duration::zero(), *policy.wait - (electorate_.clock().now() - began_));
  return policy;
}

/// One that was acquired long before the others may be gone by now.
bool SetWaiter::is_good() const {
  return !set_->lost() && electorate_.clock().now() + orders_.front().needed_validity < set_->deadline();
}

asio::awaitable<void> SetWaiter::give_back() {
  if (set_->leases().empty()) co_return;
  (void)co_await set_->release(/*by_hand=*/false);
  set_ = std::make_shared<HeldSet>(electorate_);
}

}  // namespace redlock
