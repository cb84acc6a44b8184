#include "engine/inspect.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "core/backoff.hpp"
#include "engine/hold_keeper.hpp"
#include "engine/round.hpp"

namespace redlock {
namespace {

/// The number of resources that are inspected at a time: a reply may have several KiB.
constexpr std::size_t max_at_once = 64;

using ListVote = std::variant<LockList, Fault>;

asio::awaitable<ListVote> list_one(LockServer& server, ListRequest request) {
  auto listed = co_await server.list(std::move(request));
  if (!listed) co_return listed.error();
  co_return std::move(*listed);
}

const Owner* owner_in(const Holder& holder, const Owner& process) {
  return holder.owner && is_same_process(*holder.owner, process) ? &*holder.owner : nullptr;
}

/// The record of the process as a holder of the lock; null if it is none of those that are shown.
const Owner* held_by(const Inspection& lock, const Owner& process) {
  if (lock.holder) {
    if (const Owner* owner = owner_in(*lock.holder, process)) return owner;
  }
  for (const Share& share : lock.parties.first_shares) {
    if (const Owner* owner = owner_in(share.holder, process)) return owner;
  }
  return nullptr;
}

asio::awaitable<Inspection> look_at(ServerSet& server_set, std::string key) {
  const auto resource = Resource::from(key);
  if (!resource) co_return Inspection();
  const std::vector<InspectVote> votes = co_await inspect(server_set, *resource);
  co_return summarize(votes);
}

/// The lock that a holder of `held` waits for; nullopt if it waits for none, or if that is unknown.
asio::awaitable<std::optional<AwaitedLock>> awaited_by(ServerSet& server_set, std::string held,
                                                       Owner holder) {
  // The usual case: it holds them all.
  const Inspection last = co_await look_at(server_set, holder.last_key);
  if (held_by(last, holder) != nullptr) co_return std::nullopt;
  // A record may name any key. Those of this tool name a later one, so this ends.
  while (holder.next_key > held) {
    held = holder.next_key;
    const Inspection lock = co_await look_at(server_set, held);
    if (const Owner* owner = held_by(lock, holder)) {
      holder = Owner(*owner);
      continue;
    }
    const auto& waiters = lock.parties.first_waiters;
    const auto ours = std::ranges::find_if(waiters, [&](const Waiting& waiting) {
      return waiting.owner && is_same_process(*waiting.owner, holder);
    });
    if (ours == waiters.end()) break;
    co_return AwaitedLock{Resource::from(held).value(),
                          static_cast<std::size_t>(ours - waiters.begin())};
  }
  co_return std::nullopt;
}

/// Sets Holder::waits_for of all holders that the votes show.
asio::awaitable<void> find_awaited(ServerSet& server_set, const Resource& resource,
                                   std::vector<InspectVote>& votes) {
  std::vector<Holder*> holders;
  for (InspectVote& vote : votes) {
    auto* taken = std::get_if<Taken>(&vote);
    if (taken == nullptr) continue;
    // The holder of a shared lock stands for all shares.
    if (!taken->holder.shared) holders.push_back(&taken->holder);
    for (Share& share : taken->parties.first_shares) holders.push_back(&share.holder);
  }
  std::map<LeaseId, std::optional<AwaitedLock>> known;
  for (Holder* const holder : holders) {
    if (!holder->owner || holder->owner->next_key.empty()) continue;
    auto found = known.find(holder->id);
    if (found == known.end()) {
      auto awaited = co_await awaited_by(server_set, resource.key(), *holder->owner);
      found = known.emplace(holder->id, std::move(awaited)).first;
    }
    holder->waits_for = found->second;
  }
}

/// The progress of all servers together.
class TotalProgress {
 public:
  explicit TotalProgress(std::function<void(const ListProgress&)> report)
      : report_(std::move(report)) {}

  [[nodiscard]] bool is_wanted() const { return report_ != nullptr; }

  void note(const LockServer& server, const ListProgress& progress) {
    of_server_[&server] = progress;
    ListProgress total;
    for (const auto& [one, part] : of_server_) {
      total.keys += part.keys;
      if (part.of) total.of = total.of.value_or(0) + *part.of;
    }
    report_(total);
  }

 private:
  std::map<const LockServer*, ListProgress> of_server_;
  std::function<void(const ListProgress&)> report_;
};

/// Makes the servers that did not have the hold which was broken at others refuse its return
/// (PROTOCOL F3).
asio::awaitable<void> keep_broken(ServerSet& server_set, BreakRequest request,
                                  const std::vector<BreakVote>& votes) {
  for (const BreakVote& vote : votes) {
    const auto* broken = std::get_if<Broken>(&vote);
    if (broken == nullptr || broken->holder.shared || !broken->holder.owner) continue;
    if (!broken->holder.owner->hold_for) continue;
    request.hold = broken->holder.id;
    request.tombstone_life =
        std::max(request.tombstone_life, broken->holder.remaining.value_or(Duration::zero()));
  }
  if (!request.hold) co_return;
  request.only_if.reset();
  const Instant deadline = server_set.clock().now() + server_set.server_timeout();
  const auto ballot = std::make_shared<Ballot<VoteList<BreakVote>>>(server_set);
  for (std::size_t i = 0; i < votes.size(); ++i) {
    if (!std::holds_alternative<NothingToBreak>(votes[i])) {
      ballot->tally.count(i, votes[i]);
      continue;
    }
    ask(server_set, ballot, i,
        [request, deadline](LockServer& server) { return server.break_lock(request, deadline); });
  }
  while (!ballot->tally.complete()) co_await ballot->event->wait_until(Instant::max());
}

}  // namespace

asio::awaitable<std::vector<InspectVote>> inspect(ServerSet& server_set, Resource resource,
                                                  InspectScope scope) {
  const Instant deadline = server_set.clock().now() + server_set.server_timeout();
  return ask_each<InspectVote>(server_set, [resource = std::move(resource), deadline,
                                            scope = std::move(scope)](LockServer& server) {
    return server.inspect(resource, std::nullopt, deadline, scope);
  });
}

asio::awaitable<void> inspect_all(ServerSet& server_set, const std::vector<Resource>& resources,
                                  InspectScope scope, Inspected inspected) {
  std::vector<std::vector<InspectVote>> votes(resources.size());
  std::size_t next = 0;
  Interrupt uninterrupted;
  const auto inspect_one = [&](std::size_t i) -> asio::awaitable<void> {
    const Instant t0 = server_set.clock().now();
    std::vector<InspectVote> found = co_await inspect(server_set, resources[i], scope);
    co_await keep_holds(server_set, resources[i], shown_by(found), t0, uninterrupted);
    co_await find_awaited(server_set, resources[i], found);
    votes[i] = std::move(found);
    for (; next < votes.size() && !votes[next].empty(); ++next)
      inspected(resources[next], std::exchange(votes[next], {}));
  };
  co_await run_all(server_set.executor(), server_set.clock(), resources.size(), inspect_one,
                   max_at_once);
}

asio::awaitable<std::vector<SkipVote>> count_skip(ServerSet& server_set, Resource resource,
                                                  std::string why) {
  const Instant deadline = server_set.clock().now() + server_set.server_timeout();
  return ask_each<SkipVote>(
      server_set, [resource = std::move(resource), why = std::move(why), deadline](
                      LockServer& server) { return server.count_skip(resource, why, deadline); });
}

asio::awaitable<std::vector<BreakVote>> break_lock(ServerSet& server_set, BreakRequest request) {
  const Instant deadline = server_set.clock().now() + server_set.server_timeout();
  const auto question = [request, deadline](LockServer& server) {
    return server.break_lock(request, deadline);
  };
  std::vector<BreakVote> votes = co_await ask_each<BreakVote>(server_set, question);
  co_await keep_broken(server_set, request, votes);
  const Holder* broken = broken_by_quorum(votes);
  if (!request.only_if || broken == nullptr) co_return votes;
  // A server that granted the lease late may show it with another fence.
  const LeaseId id = broken->id;
  for (std::size_t i = 0; i < votes.size(); ++i) {
    const auto* other = std::get_if<OtherFence>(&votes[i]);
    if (other == nullptr || other->holder.id != id || !other->holder.fence) continue;
    request.only_if = other->holder.fence;
    votes[i] = co_await server_set.server(i).break_lock(
        request, server_set.clock().now() + server_set.server_timeout());
  }
  co_return votes;
}

asio::awaitable<std::vector<BreakVote>> break_foreign(ServerSet& server_set, BreakRequest request,
                                                      std::vector<BreakVote> votes) {
  const Instant deadline = server_set.clock().now() + server_set.server_timeout();
  const auto ballot = std::make_shared<Ballot<VoteList<BreakVote>>>(server_set);
  for (std::size_t i = 0; i < votes.size(); ++i) {
    const auto* key = std::get_if<ForeignKey>(&votes[i]);
    if (key == nullptr) {
      ballot->tally.count(i, std::move(votes[i]));
      continue;
    }
    request.foreign = key->holder.id;
    ask(server_set, ballot, i,
        [request, deadline](LockServer& server) { return server.break_lock(request, deadline); });
  }
  while (!ballot->tally.complete()) co_await ballot->event->wait_until(Instant::max());
  co_return ballot->tally.votes();
}

asio::awaitable<std::vector<InspectVote>> ask_to_stop(ServerSet& server_set, AskRequest request) {
  const Instant deadline = server_set.clock().now() + server_set.server_timeout();
  return ask_each<InspectVote>(server_set,
                               [request = std::move(request), deadline](LockServer& server) {
                                 return server.ask_holder(request, deadline);
                               });
}

asio::awaitable<std::vector<InspectVote>> read_holder(ServerSet& server_set, AskRequest question) {
  const Clock& clock = server_set.clock();
  SplitSeries split{clock.now()};
  for (;;) {
    const Instant asked_at = clock.now();
    std::vector<InspectVote> votes = co_await ask_to_stop(server_set, question);
    if (summarize(votes).state != InspectState::partly_held) co_return votes;
    const Duration took = clock.now() - asked_at;
    const Duration delay = split_delay(split.rounds, took, server_set.random());
    const std::optional<Instant> again = split.retry_at(clock.now(), delay);
    if (!again) co_return votes;
    co_await sleep_until(clock, *again);
  }
}

asio::awaitable<std::vector<std::string>> servers_that_persist_nothing(ServerSet& server_set) {
  const Instant deadline = server_set.clock().now() + server_set.server_timeout();
  std::vector<std::optional<bool>> forgets(server_set.size());
  const auto ask_one = [&](std::size_t i) -> asio::awaitable<void> {
    forgets[i] = co_await server_set.server(i).persists_nothing(deadline);
  };
  co_await run_all(server_set.executor(), server_set.clock(), server_set.size(), ask_one);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < forgets.size(); ++i)
    if (forgets[i] == true) names.push_back(server_set.server(i).name());
  co_return names;
}

asio::awaitable<Listing> list_resources(ServerSet& server_set, ListingRequest request) {
  ListRequest each{.listed = request.listed,
                   .prefix = request.prefix,
                   .answer_timeout = server_set.server_timeout(),
                   .wants_other_key = request.wants_other_key,
                   .until = request.until};
  const auto total = std::make_shared<TotalProgress>(std::move(request.progress));
  const bool tells = total->is_wanted();
  const auto question = [each, total, tells](LockServer& server) {
    ListRequest own = each;
    if (tells)
      own.progress = [total, &server](const ListProgress& part) { total->note(server, part); };
    return list_one(server, std::move(own));
  };
  const auto votes = co_await ask_each<ListVote>(server_set, question);
  std::set<Resource> resources;
  Listing listing;
  for (std::size_t i = 0; i < votes.size(); ++i) {
    const auto* listed = std::get_if<LockList>(&votes[i]);
    if (listed == nullptr) continue;
    std::ranges::copy_if(listed->resources, std::inserter(resources, resources.end()),
                         [&request](const Resource& resource) {
                           return resource.key().starts_with(request.prefix);
                         });
    if (!listing.other_key) listing.other_key = listed->other_key;
    for (const Fault& fault : listed->skipped) {
      listing.skipped.push_back({server_set.server(i).name(), fault});
    }
  }
  listing.resources.assign(resources.begin(), resources.end());
  listing.faults = faults_among(server_set, [&](std::size_t i) { return &votes[i]; });
  for (std::size_t i = 0; i < votes.size(); ++i) {
    const auto* listed = std::get_if<LockList>(&votes[i]);
    if (listed != nullptr && listed->missing)
      listing.faults.push_back({server_set.server(i).name(), *listed->missing});
  }
  co_return listing;
}

}  // namespace redlock
