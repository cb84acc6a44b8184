#include "engine/held_set.hpp"

#include <algorithm>
#include <utility>

#include "core/backoff.hpp"
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

int severity(ExtendDecision decision) {
  switch (decision) {
    case ExtendDecision::lost:
      return 2;
    case ExtendDecision::undecided:
    case ExtendDecision::too_few_answers:
      return 1;
    case ExtendDecision::confirmed:
      break;
  }
  return 0;
}

/// How often a round that no quorum answers is asked before the release is left to others.
constexpr unsigned max_confirming_rounds = 2;

/// A run without --once-per may matter to others, too: to one with that option, or to --max-age. If
/// it took at least this long, or several keys, one more round trip does not matter to it.
constexpr std::chrono::seconds min_confirmed_run{1};

/// A stop request by a single server is enough, but that server may have forgotten the newest run.
/// So the holder itself checks whether the requesting run is newer (Q11). A guard above us that
/// lives stops us as well, and no process should get the stop signal twice.
bool is_obeyed(const Lease& lease, const StopRequest& request) {
  if (lease.guard_lives && lease.guard_lives()) return false;
  return !request.newer || (lease.place && *lease.place < *request.newer);
}

}  // namespace

HeldSet::HeldSet(ServerSet& server_set, Interrupt& interrupt)
    : server_set_(server_set), interrupt_(interrupt) {}

void HeldSet::add(const Lease& lease) {
  leases_.push_back(lease);
  keepers_.emplace_back(server_set_, lease);
  if (HeldLease* const held = keepers_.back().held()) {
    held->on_stop_request([weak = weak_from_this(), lease](const StopRequest& request) {
      if (const auto self = weak.lock()) self->note_stop_request(lease, request);
    });
  }
  if (lease.stop_request) note_stop_request(lease, *lease.stop_request);
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

void HeldSet::note_stop_request(const Lease& lease, const StopRequest& request) {
  if (released_ || stop_requested_ || !is_obeyed(lease, request)) return;
  stop_requested_.emplace(StopRequested{lease.resource, request});
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

asio::awaitable<SetReleaseResult> HeldSet::release(ReleaseTerms terms) {
  released_ = true;
  if (changed_) changed_->notify();
  const std::vector<std::size_t> ours = this->ours();
  std::optional<Confirmation> confirmation;
  if (terms.run && needs_confirmation(*terms.run)) {
    const Instant asked = server_set_.clock().now();
    confirmation = co_await confirm();
    if (confirmation->result.decision == ExtendDecision::too_few_answers) {
      SetReleaseResult unconfirmed{confirmation->resource, {}};
      unconfirmed.result.faults = confirmation->result.faults;
      leave(std::move(terms), asked);
      co_return unconfirmed;
    }
    terms.expire_in =
        std::max(Duration::zero(), terms.expire_in - (server_set_.clock().now() - asked));
  }
  const bool is_lost = confirmation && confirmation->result.decision == ExtendDecision::lost;
  if (is_lost) {
    terms.expire_in = Duration::zero();
    terms.run->success = false;
    terms.run->run.result = terms.run->result_if_lost;
  }
  std::vector<ReleaseResult> results(ours.size());
  const auto release_one = [&](std::size_t i) -> asio::awaitable<void> {
    const Lease& lease = leases_[ours[i]];
    HeldLease& held = *keepers_[ours[i]].held();
    if (lease.user) {
      results[i] = co_await held.release(/*by_hand=*/false);
      co_return;
    }
    ReleaseTerms its_terms = terms;
    if (!its_terms.run) its_terms.run = lease.fresh;
    results[i] = co_await held.release(/*by_hand=*/false, std::move(its_terms));
  };
  co_await run_all(server_set_.executor(), server_set_.clock(), ours.size(), release_one);

  std::size_t recorded = 0;
  bool left_to_users = false;
  ReleaseResult nothing_to_do;
  nothing_to_do.decision = ReleaseDecision::released;
  SetReleaseResult worst{leases_.back().resource, std::move(nothing_to_do), false};
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].recorded) ++recorded;
    left_to_users = left_to_users || results[i].left_to_users;
    if (severity(results[i].decision) < severity(worst.result.decision)) continue;
    // It is not released, and its end does not depend on us.
    const bool is_pending_use =
        leases_[ours[i]].user && results[i].decision == ReleaseDecision::unavailable;
    if (is_pending_use) continue;
    worst.resource = leases_[ours[i]].resource;
    worst.result = std::move(results[i]);
  }
  worst.recorded = recorded > 0 && recorded == number_of_own();
  worst.left_to_users = left_to_users;
  worst.confirmed = confirmation && !is_lost;
  if (is_lost) {
    worst.resource = confirmation->resource;
    worst.result.decision = ReleaseDecision::not_ours;
    worst.result.not_ours = std::move(confirmation->result.not_ours);
  }
  co_return worst;
}

std::vector<std::size_t> HeldSet::ours() const {
  std::vector<std::size_t> ours;
  for (std::size_t i = leases_.size(); i-- > 0;) {
    if (leases_[i].keeping == Keeping::own || leases_[i].user) ours.push_back(i);
  }
  return ours;
}

std::size_t HeldSet::number_of_own() const {
  return static_cast<std::size_t>(std::ranges::count(leases_, Keeping::own, &Lease::keeping));
}

/// A single vote decides by itself whether the run held the lease that it releases.
bool HeldSet::needs_confirmation(const RunRecord& run) const {
  const std::size_t keys = number_of_own();
  const Duration took = run.run.started - run.run.ended.value_or(run.run.started);
  const bool is_free = keys > 1 || took >= Duration(min_confirmed_run);
  const bool may_matter = run.remember_for > Duration::zero() || is_free;
  return run.success && may_matter && server_set_.size() * keys > 1;
}

asio::awaitable<HeldSet::Confirmation> HeldSet::confirm() {
  const Clock& clock = server_set_.clock();
  const std::vector<std::size_t> ours = this->ours();
  for (unsigned round = 1;; ++round) {
    std::vector<ExtendResult> results(ours.size());
    const auto ask_one = [&](std::size_t i) -> asio::awaitable<void> {
      LeaseKeeper& keeper = keepers_[ours[i]];
      results[i] = co_await keeper.held()->extend(leases_[ours[i]].ttl, keeper.deadline());
    };
    co_await run_all(server_set_.executor(), clock, ours.size(), ask_one);
    std::size_t worst = 0;
    for (std::size_t i = 1; i < results.size(); ++i) {
      if (severity(results[i].decision) > severity(results[worst].decision)) worst = i;
    }
    const bool is_open = results[worst].decision == ExtendDecision::too_few_answers;
    if (!is_open || round == max_confirming_rounds || clock.now() >= deadline())
      co_return Confirmation{leases_[ours[worst]].resource, std::move(results[worst])};
    co_await sleep_until(clock, clock.now() + unavailable_delay(round, server_set_.random()));
  }
}

void HeldSet::leave(ReleaseTerms terms, Instant as_of) {
  UnconfirmedRelease release{{}, std::move(terms), as_of};
  for (const std::size_t i : ours()) {
    release.leases.push_back(leases_[i]);
    release.leases.back().deadline = keepers_[i].deadline();
  }
  server_set_.leave(std::move(release));
}

asio::awaitable<void> release_unconfirmed(ServerSet& server_set, Interrupt& interrupt) {
  const Clock& clock = server_set.clock();
  for (unsigned k = 0;; ++k) {
    auto left = server_set.take_unconfirmed();
    if (!left) co_return;
    const auto set = std::make_shared<HeldSet>(server_set, interrupt);
    for (const Lease& lease : left->leases) set->add(lease);
    if (clock.now() >= set->deadline()) {
      // The run is no success without the first; the others must not last until their ends.
      for (const Lease& lease : left->leases) {
        if (lease.deadline <= clock.now()) continue;
        HeldLease held(server_set, lease);
        ReleaseTerms terms;
        terms.may_have_users = left->terms.may_have_users;
        (void)co_await held.release(/*by_hand=*/false, std::move(terms));
      }
      co_return;
    }
    left->terms.expire_in =
        std::max(Duration::zero(), left->terms.expire_in - (clock.now() - left->as_of));
    (void)co_await set->release(std::move(left->terms));
    co_await sleep_until(clock, clock.now() + unavailable_delay(k, server_set.random()));
  }
}

}  // namespace redlock
