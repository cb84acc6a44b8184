#include "engine/held_set.hpp"

#include <algorithm>

#include "engine/inherited_lease.hpp"
#include "engine/side_by_side.hpp"
#include "support/spawn.hpp"

namespace redlock {

struct HeldSet::Member {
  Member(ServerSet& server_set, const Lease& lease)
      : held(server_set, lease.resource, lease.token, lease.fence, lease.hold, lease.ttl),
        keeper(server_set, held, lease),
        inherited(server_set, lease),
        keeping(lease.keeping),
        resource(lease.resource),
        ttl(lease.ttl),
        deadline(lease.deadline) {}

  HeldLease held;
  LeaseKeeper keeper;
  InheritedLease inherited;
  Keeping keeping;
  Resource resource;
  Ttl ttl;
  Instant deadline;
};

namespace {

/// Orders the results, the worst highest: the lease was not ours any more, we may not release it,
/// no quorum confirmed it.
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

}  // namespace

void HeldSet::add(const Lease& lease) {
  leases_.push_back(lease);
  members_.push_back(std::make_shared<Member>(server_set_, lease));
  if (events_) start(members_.back());
}

void HeldSet::keep(SetEvents events) {
  const bool first = !events_.has_value();
  events_ = std::move(events);
  if (first) {
    for (const auto& member : members_) start(member);
  }
  if (ended_) events_->ended(ended_->resource, ended_->event);
}

Instant HeldSet::deadline() const {
  Instant earliest = Instant::max();
  for (const auto& member : members_) earliest = std::min(earliest, member->deadline);
  return earliest;
}

void HeldSet::start(const std::shared_ptr<Member>& member) {
  spawn(server_set_.executor(),
        [self = shared_from_this(), member] { return self->keep_alive(member); });
}

asio::awaitable<void> HeldSet::keep_alive(std::shared_ptr<Member> member) {
  const Resource& resource = member->resource;
  while (!over_) {
    std::variant<LeaseExtended, LeaseInTrouble, LeaseEnded> event;
    if (member->keeping == Keeping::inherited) {
      event = co_await member->inherited.next();
    } else {
      event = co_await member->keeper.next();
    }
    if (over_) co_return;
    if (const auto* extended = std::get_if<LeaseExtended>(&event)) {
      member->deadline = extended->deadline;
      events_->extended(extended->after_trouble);
    } else if (const auto* trouble = std::get_if<LeaseInTrouble>(&event)) {
      events_->in_trouble(resource, *trouble);
    } else {
      const LeaseEnded& end = std::get<LeaseEnded>(event);
      const bool first = !ended_;
      if (first) ended_.emplace(Ended{resource, end});
      if (first) events_->ended(resource, end);
      co_return;
    }
  }
}

asio::awaitable<ExtendResult> HeldSet::extend() {
  ExtendResult result;
  result.decision = ExtendDecision::confirmed;
  for (const auto& member : members_) {
    if (member->keeping == Keeping::inherited) continue;
    result = co_await member->held.extend(member->ttl);
    if (result.decision != ExtendDecision::confirmed) break;
  }
  co_return result;
}

asio::awaitable<SetReleaseResult> HeldSet::release(bool by_hand, Duration expire_in,
                                                   std::optional<Owner> finished,
                                                   std::optional<RunRecord> run) {
  over_ = true;
  std::vector<std::size_t> own;
  std::vector<std::function<asio::awaitable<ReleaseResult>()>> releases;
  for (std::size_t i = members_.size(); i-- > 0;) {
    if (members_[i]->keeping != Keeping::own) continue;
    own.push_back(i);
    releases.emplace_back(
        [member = members_[i], by_hand, expire_in, finished, run = run ? run : leases_[i].fresh] {
          return member->held.release(by_hand, expire_in, finished, run);
        });
  }
  std::vector<ReleaseResult> results = co_await side_by_side(server_set_, std::move(releases));

  std::size_t recorded = 0;
  ReleaseResult nothing_to_do;
  nothing_to_do.decision = ReleaseDecision::released;
  SetReleaseResult worst{members_.back()->resource, std::move(nothing_to_do), false};
  for (std::size_t r = 0; r < results.size(); ++r) {
    if (results[r].recorded) ++recorded;
    if (severity(results[r].decision) < severity(worst.result.decision)) continue;
    worst.resource = members_[own[r]]->resource;
    worst.result = std::move(results[r]);
  }
  worst.recorded = !own.empty() && recorded == own.size();
  co_return worst;
}

}  // namespace redlock
