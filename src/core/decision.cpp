#include "core/decision.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "core/last_runs.hpp"

namespace redlock {
namespace {

template <class Vote>
using Votes = std::vector<std::optional<Vote>>;

template <class Kind, class Vote>
const Kind* as(const std::optional<Vote>& vote) {
  return vote ? std::get_if<Kind>(&*vote) : nullptr;
}

template <class Kind, class Vote>
const Kind* as(const Vote& vote) {
  return std::get_if<Kind>(&vote);
}

template <class Kind, class Votes>
std::size_t number_of(const Votes& votes) {
  return static_cast<std::size_t>(
      std::ranges::count_if(votes, [](const auto& vote) { return as<Kind>(vote) != nullptr; }));
}

template <class Vote>
std::size_t number_missing(const Votes<Vote>& votes) {
  return static_cast<std::size_t>(
      std::ranges::count_if(votes, [](const auto& vote) { return !vote.has_value(); }));
}

std::size_t faults_of(const Votes<AcquireVote>& votes, FaultKind kind) {
  return static_cast<std::size_t>(std::ranges::count_if(votes, [=](const auto& vote) {
    const Fault* fault = as<Fault>(vote);
    return fault != nullptr && fault->kind == kind;
  }));
}

/// A server reports its uptime in whole seconds.
constexpr std::chrono::seconds uptime_rounding{1};

/// Whether two grants came from one process under two names.
bool has_duplicates(const Votes<AcquireVote>& votes) {
  for (std::size_t i = 0; i < votes.size(); ++i) {
    const Granted* one = as<Granted>(votes[i]);
    if (one == nullptr || one->server.run_id.empty()) continue;
    for (std::size_t j = i + 1; j < votes.size(); ++j) {
      const Granted* other = as<Granted>(votes[j]);
      if (other != nullptr && other->server.run_id == one->server.run_id) return true;
    }
  }
  return false;
}

/// Identifies the process that gave the vote; empty when unknown.
std::string_view run_id_of(const ExtendVote& vote) {
  if (const auto* extended = std::get_if<Extended>(&vote)) return extended->server.run_id;
  if (const auto* not_ours = std::get_if<NotOurs>(&vote)) return not_ours->server.run_id;
  return {};
}

std::string_view run_id_of(const InspectVote& vote) {
  if (const auto* free = std::get_if<Free>(&vote)) return free->server.run_id;
  if (const auto* taken = std::get_if<Taken>(&vote)) return taken->server.run_id;
  return {};
}

/// Replaces the vote of a process that has already voted under another name.
Fault duplicate_fault() {
  return Fault{FaultKind::misconfigured, "its address leads to the same server as another one"};
}

/// Whether no quorum is left without `against` of the servers.
bool no_quorum_without(std::size_t against, std::size_t servers) {
  return against > 0 && servers - against < quorum_of(servers);
}

/// A lease, and the number of servers that show it.
struct LeaseVotes {
  const Holder* holder = nullptr;
  std::size_t votes = 0;
};

/// The lease that most servers show in votes of this kind; among equals, the one that the first
/// server shows. It is described by a server that has its owner record, if there is one: a server
/// that lost the record takes the lease for a foreign client's.
template <class Kind, class Votes>
LeaseVotes leading(const Votes& votes) {
  LeaseVotes lead;
  for (const auto& vote : votes) {
    const Kind* held = as<Kind>(vote);
    if (held == nullptr) continue;
    LeaseVotes same{&held->holder, 0};
    for (const auto& other : votes) {
      const Kind* also = as<Kind>(other);
      if (also == nullptr || also->holder.id != held->holder.id) continue;
      ++same.votes;
      if (!same.holder->owner && also->holder.owner) same.holder = &also->holder;
    }
    if (same.votes > lead.votes) lead = same;
  }
  return lead;
}

const LockParties* parties_in(const InspectVote& vote) {
  if (const auto* taken = std::get_if<Taken>(&vote)) return &taken->parties;
  const auto* free = std::get_if<Free>(&vote);
  return free != nullptr ? &free->parties : nullptr;
}

const LastRuns* runs_in(const InspectVote& vote) {
  if (const auto* taken = std::get_if<Taken>(&vote)) return &taken->runs;
  const auto* free = std::get_if<Free>(&vote);
  return free != nullptr ? &free->runs : nullptr;
}

std::vector<Fence> fences_shown(const std::vector<InspectVote>& votes, const LeaseId& id) {
  std::vector<Fence> fences;
  for (const InspectVote& vote : votes) {
    const Taken* taken = as<Taken>(vote);
    if (taken != nullptr && taken->holder.id == id && taken->holder.fence)
      fences.push_back(*taken->holder.fence);
  }
  return fences;
}

/// Whether a quorum shows the lease like that, or may, as servers with faults hide what they have.
template <class Question>
bool quorum_may_show(const std::vector<InspectVote>& all_votes, const LeaseId& id, Question is_so) {
  const std::vector<InspectVote> votes = without_duplicates(all_votes);
  const auto number = std::ranges::count_if(votes, [&](const InspectVote& vote) {
    const Taken* taken = as<Taken>(vote);
    if (taken == nullptr) return as<Fault>(vote) != nullptr;
    return taken->holder.id == id && is_so(taken->holder);
  });
  return static_cast<std::size_t>(number) >= quorum_of(votes.size());
}

/// Why we got no lease, if a quorum of servers answered or may still answer.
AcquireDecision classify_holders(const Votes<AcquireVote>& votes) {
  const std::size_t quorum = quorum_of(votes.size());
  const LeaseVotes lead = leading<Held>(votes);
  // Several failing attempts at a shared lock look like one lease, so a quorum of them proves
  // nothing.
  const bool sure = lead.holder != nullptr && (!lead.holder->shared || votes.size() == 1);
  if (lead.votes >= quorum) return sure ? AcquireDecision::busy : AcquireDecision::maybe_busy;
  // If no client has the lock now, the first of its waiters soon will.
  const std::size_t waited_for = number_of<Queued>(votes);
  if (waited_for > 0 && lead.votes + waited_for >= quorum) return AcquireDecision::busy;
  // Only silence can hide a lease: any other fault means that the server cast no vote.
  const bool may_have_quorum =
      lead.votes > 0 && lead.votes + faults_of(votes, FaultKind::silent) >= quorum;
  if (!may_have_quorum) return AcquireDecision::split;
  // Failed attempts of this tool are undone. A foreign client's value may well stay.
  return lead.holder->foreign ? AcquireDecision::busy : AcquireDecision::maybe_busy;
}

/// Why a quorum of grants is no longer possible.
AcquireDecision classify_failure(const Votes<AcquireVote>& votes) {
  const std::size_t servers = votes.size();
  const auto lasting = lasting_obstacle(faults_of(votes, FaultKind::denied),
                                        faults_of(votes, FaultKind::misconfigured), servers);
  if (lasting) {
    return *lasting == FaultKind::denied ? AcquireDecision::denied : AcquireDecision::misconfigured;
  }
  const std::size_t answers =
      number_of<Granted>(votes) + number_of<Held>(votes) + number_of<Queued>(votes);
  if (answers + number_missing(votes) < quorum_of(servers)) return AcquireDecision::unavailable;
  // With an even number of servers, half of them are enough to rule out a grant, but not enough to
  // show whether the lock is busy or what our position in the queue is.
  if (answers < quorum_of(servers)) return AcquireDecision::undecided;
  return classify_holders(votes);
}

}  // namespace

std::optional<FaultKind> lasting_obstacle(std::size_t denied, std::size_t misconfigured,
                                          std::size_t servers) {
  if (no_quorum_without(denied, servers)) return FaultKind::denied;
  if (no_quorum_without(misconfigured, servers)) return FaultKind::misconfigured;
  // Neither kind alone rules out a quorum, so there are faults of both. Report the denial, as
  // rights are easier to correct.
  if (no_quorum_without(denied + misconfigured, servers)) return FaultKind::denied;
  return std::nullopt;
}

std::optional<Fence> fence_of(const std::vector<Fence>& shown, std::size_t servers) {
  const auto is_known = [&](const Fence& fence) {
    return static_cast<std::size_t>(std::ranges::count(shown, fence)) >= quorum_of(servers);
  };
  if (const auto known = std::ranges::find_if(shown, is_known); known != shown.end()) return *known;
  const auto largest = std::ranges::max_element(shown);
  return largest == shown.end() ? std::nullopt : std::optional(*largest);
}

std::optional<Duration> guard_remaining(Duration up, Duration restart_guard) {
  if (restart_guard <= Duration::zero() || up > restart_guard + uptime_rounding)
    return std::nullopt;
  return restart_guard + uptime_rounding - up;
}

AcquireTally::AcquireTally(std::size_t servers, Duration restart_guard)
    : votes_(servers), restart_guard_(restart_guard) {}

void AcquireTally::count(std::size_t server, AcquireVote vote) {
  const Granted* granted = std::get_if<Granted>(&vote);
  if (restart_guard_ > Duration::zero() && granted != nullptr && !granted->server.up) {
    vote = Fault{FaultKind::denied,
                 "it does not report its uptime, so --restart-guard cannot tell whether it forgot "
                 "a lock: allow INFO (+info), or set --restart-guard 0 for all clients"};
  }
  votes_.at(server) = std::move(vote);
}

const Granted* AcquireTally::as_counted(const std::optional<AcquireVote>& vote,
                                        const Slots& slots) const {
  const Granted* granted = as<Granted>(vote);
  if (granted == nullptr || granted->slots != slots) return nullptr;
  const bool is_guarded =
      granted->server.up && guard_remaining(*granted->server.up, restart_guard_);
  return is_guarded ? nullptr : granted;
}

Slots AcquireTally::slots() const {
  std::map<Slots, std::size_t> granted;
  for (const auto& vote : votes_) {
    if (const Granted* one = as<Granted>(vote)) ++granted[one->slots];
  }
  const auto most =
      std::ranges::max_element(granted, {}, [](const auto& entry) { return entry.second; });
  return most == granted.end() ? Slots() : most->first;
}

AcquireDecision AcquireTally::decision() const {
  const std::size_t quorum = quorum_of(votes_.size());
  if (number_of<Duplicate>(votes_) > 0) return AcquireDecision::duplicate;
  if (has_duplicates(votes_)) return AcquireDecision::duplicate;
  if (grants() >= quorum) return AcquireDecision::granted;
  if (grants() + number_missing(votes_) >= quorum) return AcquireDecision::undecided;
  const Slots slots = this->slots();
  const auto granted =
      static_cast<std::size_t>(std::ranges::count_if(votes_, [&](const auto& vote) {
        const Granted* one = as<Granted>(vote);
        return one != nullptr && one->slots == slots;
      }));
  if (granted >= quorum) return AcquireDecision::guarded;
  if (granted > grants() && granted + number_missing(votes_) >= quorum)
    return AcquireDecision::undecided;
  return classify_failure(votes_);
}

std::size_t AcquireTally::grants() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      votes_,
      [this, slots = slots()](const auto& vote) { return as_counted(vote, slots) != nullptr; }));
}

std::vector<RestartedServer> AcquireTally::restarted() const {
  const Slots slots = this->slots();
  std::vector<RestartedServer> restarted;
  for (std::size_t server = 0; server < votes_.size(); ++server) {
    const Granted* granted = as<Granted>(votes_[server]);
    if (granted == nullptr || granted->slots != slots || !granted->server.up) continue;
    const Duration up = *granted->server.up;
    if (const auto left = guard_remaining(up, restart_guard_))
      restarted.push_back({server, up, *left});
  }
  std::ranges::sort(restarted, {}, &RestartedServer::left);
  const std::size_t needed =
      quorum_of(votes_.size()) - std::min(grants(), quorum_of(votes_.size()));
  if (restarted.size() > needed) restarted.resize(needed, RestartedServer{});
  return restarted;
}

Fence AcquireTally::fence() const {
  const Slots slots = this->slots();
  Fence largest;
  for (const auto& vote : votes_) {
    if (const Granted* granted = as_counted(vote, slots))
      largest = std::max(largest, granted->fence);
  }
  return largest;
}

std::vector<std::size_t> AcquireTally::granted_below(Fence fence) const {
  const Slots slots = this->slots();
  std::vector<std::size_t> servers;
  for (std::size_t server = 0; server < votes_.size(); ++server) {
    const Granted* granted = as_counted(votes_[server], slots);
    if (granted != nullptr && granted->fence < fence) servers.push_back(server);
  }
  return servers;
}

const Holder* AcquireTally::main_holder() const {
  return leading<Held>(votes_).holder;
}

std::vector<LastRuns> AcquireTally::runs() const {
  std::vector<LastRuns> runs;
  for (const auto& vote : votes_) {
    if (const Granted* granted = as<Granted>(vote)) runs.push_back(granted->runs);
  }
  return runs;
}

const AcquireVote* AcquireTally::vote_of(std::size_t server) const {
  const auto& vote = votes_.at(server);
  return vote ? &*vote : nullptr;
}

ExtendDecision decide_extension(std::size_t standing, std::size_t gone, std::size_t missing,
                                std::size_t servers) {
  const std::size_t quorum = quorum_of(servers);
  if (standing >= quorum) return ExtendDecision::confirmed;
  if (no_quorum_without(gone, servers)) return ExtendDecision::lost;
  const bool may_confirm = standing + missing >= quorum;
  const bool may_lose = missing > 0 && no_quorum_without(gone + missing, servers);
  return may_confirm || may_lose ? ExtendDecision::undecided : ExtendDecision::too_few_answers;
}

ExtendTally::ExtendTally(std::size_t servers) : votes_(servers) {}

void ExtendTally::count(std::size_t server, ExtendVote vote) {
  const auto is_duplicate = [&](const std::optional<ExtendVote>& other) {
    return &other != &votes_.at(server) && other && !run_id_of(vote).empty() &&
           run_id_of(*other) == run_id_of(vote);
  };
  if (std::ranges::any_of(votes_, is_duplicate)) {
    vote = duplicate_fault();
  }
  votes_.at(server) = std::move(vote);
}

ExtendDecision ExtendTally::decision() const {
  return decide_extension(number_of<Extended>(votes_), number_of<NotOurs>(votes_),
                          number_missing(votes_), votes_.size());
}

const ExtendVote* ExtendTally::vote_of(std::size_t server) const {
  const auto& vote = votes_.at(server);
  return vote ? &*vote : nullptr;
}

ReleaseDecision decide_release(const std::vector<ReleaseVote>& votes) {
  if (number_of<Supervised>(votes) > 0) return ReleaseDecision::supervised;
  if (number_of<Released>(votes) >= quorum_of(votes.size())) return ReleaseDecision::released;
  if (no_quorum_without(number_of<NotOurs>(votes), votes.size())) return ReleaseDecision::not_ours;
  return ReleaseDecision::unavailable;
}

bool was_released(const std::vector<ReleaseVote>& votes) {
  const auto released = std::ranges::count_if(votes, [](const ReleaseVote& vote) {
    const NotOurs* not_ours = as<NotOurs>(vote);
    return as<Released>(vote) != nullptr ||
           (not_ours != nullptr && not_ours->why == NotOurs::Why::released);
  });
  return static_cast<std::size_t>(released) >= quorum_of(votes.size());
}

bool is_recorded(const std::vector<ReleaseVote>& votes) {
  const auto recorded = std::ranges::count_if(votes, [](const ReleaseVote& vote) {
    const Released* released = as<Released>(vote);
    return released != nullptr && released->recorded;
  });
  return static_cast<std::size_t>(recorded) >= quorum_of(votes.size());
}

const Holder* broken_by_quorum(const std::vector<BreakVote>& votes) {
  const LeaseVotes broken = leading<Broken>(votes);
  return broken.votes >= quorum_of(votes.size()) ? broken.holder : nullptr;
}

std::vector<InspectVote> without_duplicates(std::vector<InspectVote> votes) {
  for (std::size_t i = 0; i < votes.size(); ++i) {
    const auto is_earlier = [&](const InspectVote& other) {
      return run_id_of(other) == run_id_of(votes[i]);
    };
    const auto end = votes.begin() + static_cast<std::ptrdiff_t>(i);
    if (!run_id_of(votes[i]).empty() && std::any_of(votes.begin(), end, is_earlier))
      votes[i] = duplicate_fault();
  }
  return votes;
}

Inspection summarize(const std::vector<InspectVote>& all_votes) {
  const std::vector<InspectVote> votes = without_duplicates(all_votes);
  const std::size_t quorum = quorum_of(votes.size());
  const std::size_t free = number_of<Free>(votes);
  const LeaseVotes lead = leading<Taken>(votes);
  Inspection inspection;
  if (lead.holder != nullptr) {
    inspection.holder = *lead.holder;
    inspection.holder->fence = fence_of(fences_shown(votes, lead.holder->id), votes.size());
    // One server may have missed a user, or lost it.
    for (const InspectVote& vote : votes) {
      const Taken* taken = as<Taken>(vote);
      if (taken != nullptr && taken->holder.id == lead.holder->id &&
          taken->holder.users.size() > inspection.holder->users.size())
        inspection.holder->users = taken->holder.users;
    }
  }
  for (const InspectVote& vote : votes) {
    if (const LastRuns* some = runs_in(vote)) inspection.runs_by_server.push_back(*some);
    const LockParties* parties = parties_in(vote);
    const auto size = [](const LockParties& some) { return some.waiters + some.shares; };
    if (parties != nullptr && size(*parties) > size(inspection.parties))
      inspection.parties = *parties;
  }
  inspection.runs = latest_of(inspection.runs_by_server);
  if (free >= quorum) {
    inspection.state = InspectState::free;
  } else if (lead.votes >= quorum) {
    inspection.state = InspectState::held;
  } else if (free + number_of<Taken>(votes) >= quorum) {
    inspection.state = InspectState::partly_held;
  }
  return inspection;
}

bool is_gone(const std::vector<InspectVote>& votes, const LeaseId& id) {
  return !quorum_may_show(
      votes, id, [](const Holder& holder) { return !(holder.owner && holder.owner->finished); });
}

bool may_have_users(const std::vector<InspectVote>& votes, const LeaseId& id) {
  return quorum_may_show(votes, id, [](const Holder& holder) { return !holder.users.empty(); });
}

Slots free_slots(const std::vector<InspectVote>& all_votes, std::size_t slots) {
  const std::vector<InspectVote> counted = without_duplicates(all_votes);
  const auto is_free = [](const InspectVote& vote, std::size_t slot) {
    const auto* taken = std::get_if<Taken>(&vote);
    if (taken == nullptr) return std::holds_alternative<Free>(vote);
    const std::string& digits = taken->parties.free_slots;
    return taken->holder.shared && (slot >= digits.size() || digits[slot] == '1');
  };
  Slots free;
  for (std::size_t slot = 0; slot < slots; ++slot) {
    const auto count = std::count_if(counted.begin(), counted.end(),
                                     [&](const InspectVote& vote) { return is_free(vote, slot); });
    if (static_cast<std::size_t>(count) >= quorum_of(counted.size())) free.push_back(slot);
  }
  return free;
}

}  // namespace redlock
