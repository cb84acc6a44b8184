#include "engine/held_set.hpp"

#include <algorithm>
#include <utility>

#include "support/spawn.hpp"

namespace redlock {
namespace {

/// Orders the results by severity: the worst is that we had lost the lease, then that we may not
/// release it, then that no quorum confirmed the release.
int severity(ReleaseDecision decision) {
  switch (decision) {
    case ReleaseDecision::not_ours:
      return 3;
    case ReleaseDecision::supervised:
      return 2;
    case ReleaseDecision::unavailable:
      return 1;
    case ReleaseDecision::released:
      break;
  }
  return 0;
}

/// A stop request by a single server is enough, but that server may have forgotten the newest run.
/// So the holder itself checks whether the requesting run is newer (Q11).
bool is_obeyed(const std::optional<Place>& ours, const StopRequest& request) {
  return !request.newer || (ours && *ours < *request.newer);
}

}  // namespace

HeldSet::HeldSet(ServerSet& server_set, Interrupt& interrupt)
    : server_set_(server_set), interrupt_(interrupt) {}

void HeldSet::add(const Lease& lease) {
  leases_.push_back(lease);
  keepers_.emplace_back(server_set_, lease);
  if (HeldLease* const held = keepers_.back().held()) {
    held->on_stop_request([weak = weak_from_this(), resource = lease.resource,
                           place = lease.place](const StopRequest& request) {
      const auto self = weak.lock();
      if (self && is_obeyed(place, request)) self->note_stop_request(resource, request);
    });
  }
  if (lease.stop_request && is_obeyed(lease.place, *lease.stop_request))
    note_stop_request(lease.resource, *lease.stop_request);
  if (kept_) start(keepers_.size() - 1);
}

void HeldSet::keep() {
  if (std::exchange(kept_, true)) return;
  for (std::size_t i = 0; i < keepers_.size(); ++i) start(i);
}

asio::awaitable<std::optional<SetEvent>> HeldSet::next() {
  if (!changed_) {
    changed_ = server_set_.clock().make_event();
    if (stop_requested_) note(*stop_requested_);
    if (ended_) note(*ended_);
  }
  const auto self = shared_from_this();
  while (events_.empty() && !released_) co_await changed_->wait_until(Instant::max());
  if (released_) co_return std::nullopt;
  std::optional<SetEvent> event = std::move(events_.front());
  events_.pop_front();
  co_return event;
}

void HeldSet::note(SetEvent event) {
  if (!changed_) return;
  events_.push_back(std::move(event));
  changed_->notify();
}

void HeldSet::note_stop_request(const Resource& resource, const StopRequest& request) {
  if (released_ || stop_requested_) return;
  stop_requested_.emplace(StopRequested{resource, request});
  interrupt_.raise();
  note(*stop_requested_);
}

Instant HeldSet::deadline() const {
  Instant earliest = Instant::max();
  for (const LeaseKeeper& keeper : keepers_) earliest = std::min(earliest, keeper.deadline());
  return earliest;
}

Instant HeldSet::next_round() const {
  Instant earliest = Instant::max();
  for (const LeaseKeeper& keeper : keepers_) earliest = std::min(earliest, keeper.next_round());
  return earliest;
}

void HeldSet::start(std::size_t index) {
  spawn(server_set_.executor(),
        [self = shared_from_this(), index] { return self->keep_alive(index); });
}

asio::awaitable<void> HeldSet::keep_alive(std::size_t index) {
  const Resource resource = leases_[index].resource;
  while (!released_) {
    const auto event = co_await keepers_[index].next();
    if (released_) co_return;
    if (const auto* extended = std::get_if<LeaseExtended>(&event)) {
      note(SetExtended{extended->after_trouble});
    } else if (const auto* trouble = std::get_if<LeaseInTrouble>(&event)) {
      note(SetInTrouble{resource, *trouble});
    } else {
      if (ended_) co_return;
      ended_.emplace(SetEnded{resource, std::get<LeaseEnded>(event)});
      note(*ended_);
      co_return;
    }
  }
}

asio::awaitable<ExtendResult> HeldSet::extend() {
  ExtendResult result;
  result.decision = ExtendDecision::confirmed;
  for (std::size_t i = 0; i < keepers_.size(); ++i) {
    HeldLease* held = keepers_[i].held();
    if (held == nullptr) continue;
    result = co_await held->extend(leases_[i].ttl);
    if (result.decision != ExtendDecision::confirmed) break;
  }
  co_return result;
}

asio::awaitable<SetReleaseResult> HeldSet::release(bool by_hand, Duration expire_in,
                                                   std::optional<Owner> finished,
                                                   std::optional<RunRecord> run) {
  released_ = true;
  if (changed_) changed_->notify();
  std::vector<std::size_t> own;
  for (std::size_t i = leases_.size(); i-- > 0;) {
    if (leases_[i].keeping == Keeping::own) own.push_back(i);
  }
  std::vector<ReleaseResult> results(own.size());
  const auto release_one = [&](std::size_t i) -> asio::awaitable<void> {
    const std::optional<RunRecord> last = run ? run : leases_[own[i]].fresh;
    results[i] = co_await keepers_[own[i]].held()->release(by_hand, expire_in, finished, last);
  };
  co_await run_all(server_set_.executor(), server_set_.clock(), own.size(), release_one);

  std::size_t recorded = 0;
  ReleaseResult nothing_to_do;
  nothing_to_do.decision = ReleaseDecision::released;
  SetReleaseResult worst{leases_.back().resource, std::move(nothing_to_do), false};
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].recorded) ++recorded;
    if (severity(results[i].decision) < severity(worst.result.decision)) continue;
    worst.resource = leases_[own[i]].resource;
    worst.result = std::move(results[i]);
  }
  worst.recorded = !own.empty() && recorded == own.size();
  co_return worst;
}

}  // namespace redlock
