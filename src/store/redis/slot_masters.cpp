#include "store/redis/slot_masters.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "support/spawn.hpp"

namespace redlock::redis {
namespace {

/// The reply has up to 16384 ranges, if the slots were moved one by one. Each range has a master
/// and some replicas, and takes 1.5 KB of memory.
constexpr ReplyLimits slots_limits{4, 16384, 64 * 1024, 32 * 1024 * 1024};

/// The number of nodes that are asked at a time when views are compared: enough to outvote a few
/// that are dead or cut off, but too few to flood a large cluster during a fail-over.
constexpr std::size_t max_compared = 5;

/// The number of nodes that are asked for one question, at most. Those that failed come last next
/// time. If all of them name the master that failed, it is tried again.
constexpr std::size_t enough_compared = 3 * max_compared;

Fault no_such_slot() {
  return {FaultKind::unavailable, "no server of its cluster has the slot of this key"};
}

/// As many of these sources as are asked at most for one question, whatever the servers name.
std::vector<Address> first_of(std::vector<Address> sources) {
  if (sources.size() > enough_compared) sources.resize(enough_compared);
  return sources;
}

asio::awaitable<Result<ClusterView, Fault>> ask_for_view(std::shared_ptr<RedisServer> server,
                                                         Address from, bool with_epoch,
                                                         Instant deadline) {
  Command question{"CLUSTER", "SLOTS"};
  const auto [reply, link] =
      co_await server->answer_to(std::move(question), slots_limits, deadline);
  if (!reply) co_return unexpected(reply.error());
  auto slots = slots_from(*reply, from);
  if (!slots) co_return unexpected(slots.error());
  if (!link->stays_on_this_host()) {
    for (SlotRange& range : *slots) {
      if (is_loopback(range.master.host)) co_return unexpected(foreign_loopback(range.master));
      std::erase_if(range.replicas, [](const Address& one) { return is_loopback(one.host); });
    }
  }
  ClusterView view{from, std::move(*slots), std::nullopt};
  if (with_epoch) {
    Command info{"CLUSTER", "INFO"};
    const auto answer = co_await server->ask(std::move(info), ReplyLimits{}, deadline);
    if (!answer) co_return unexpected(answer.error());
    view.epoch = epoch_from(*answer);
  }
  co_return view;
}

/// A view with a master of the slot that is not refuted. The fault has no text if it is refuted.
asio::awaitable<Result<ClusterView, Fault>> view_with_master(std::shared_ptr<RedisServer> server,
                                                             Address from, std::uint16_t slot,
                                                             SlotMasters::Refuted refuted,
                                                             Instant deadline) {
  auto view = co_await ask_for_view(server, from, /*with_epoch=*/false, deadline);
  if (!view) co_return unexpected(fault_at(from, view.error()));
  const SlotRange* range = range_of(view->slots, slot);
  if (range == nullptr) co_return unexpected(fault_at(from, no_such_slot()));
  if (refuted.contains(range->master)) co_return unexpected(Fault());
  co_return std::move(*view);
}

}  // namespace

SlotMasters::SlotMasters(asio::any_io_executor executor, const Clock& clock,
                         std::vector<Address> configured, NodeAt node_at,
                         std::function<void()> changed)
    : executor_(std::move(executor)),
      clock_(clock),
      node_at_(std::move(node_at)),
      changed_(std::move(changed)),
      sources_(std::move(configured)) {}

const Address* SlotMasters::known(std::uint16_t slot) const {
  const SlotRange* range = range_of(slots_, slot);
  return range == nullptr ? nullptr : &range->master;
}

asio::awaitable<Result<Address, Fault>> SlotMasters::locate(std::uint16_t slot,
                                                            const Refuted& refuted,
                                                            Instant deadline) {
  const Address* master = known(slot);
  if (master == nullptr || refuted.contains(*master)) {
    if (auto fault = co_await find_view(slot, refuted, deadline))
      co_return unexpected(std::move(*fault));
  }
  co_return *known(slot);
}

asio::awaitable<std::optional<Fault>> SlotMasters::find_view(std::uint16_t slot,
                                                             const Refuted& refuted,
                                                             Instant deadline) {
  return doubt_ ? best_view(slot, refuted, deadline) : first_view(slot, refuted, deadline);
}

asio::awaitable<std::optional<Fault>> SlotMasters::first_view(std::uint16_t slot,
                                                              const Refuted& refuted,
                                                              Instant deadline) {
  const std::vector<Address> sources = first_of(sources_.in_order());
  const std::function<asio::awaitable<Result<ClusterView, Fault>>(std::size_t)> ask_one =
      [&](std::size_t i) {
        return view_with_master(node_at_(sources[i]), sources[i], slot, refuted, deadline);
      };
  ViewAnswers<ClusterView> answers =
      co_await ask_in_turn<ClusterView>(executor_, clock_, sources.size(), ask_one, deadline);
  Fault faults;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (answers[i] && *answers[i]) {
      use(std::move(**answers[i]));
      co_return std::nullopt;
    }
    sources_.pass_over(sources[i]);
    if (answers[i] && !answers[i]->error().text.empty()) add_fault(faults, answers[i]->error());
  }
  if (faults.text.empty()) faults = no_such_slot();
  co_return faults;
}

asio::awaitable<std::optional<Fault>> SlotMasters::best_view(std::uint16_t slot,
                                                             const Refuted& refuted,
                                                             Instant deadline) {
  Fault faults;
  std::vector<Address> sources = sources_.in_order();
  // The failed master may be silent, and cannot vouch for itself. Ask it only if it is the only
  // source.
  if (sources.size() > 1) std::erase(sources, doubt_->master);
  sources = first_of(std::move(sources));
  std::optional<ClusterView> last_resort;
  std::size_t rounds = (sources.size() + max_compared - 1) / max_compared;
  for (std::size_t begin = 0; begin < sources.size(); begin += max_compared) {
    const std::size_t end = std::min(begin + max_compared, sources.size());
    const std::vector<Address> some(sources.begin() + static_cast<std::ptrdiff_t>(begin),
                                    sources.begin() + static_cast<std::ptrdiff_t>(end));
    // Some time remains for the master.
    const Instant until = time_for_one(clock_.now(), deadline, 1 + rounds--);
    Views found = co_await ask_for_views(some, /*with_epoch=*/some.size() > 1, until);
    for (ClusterView& view : newest_first(std::move(found.views))) {
      const SlotRange* range = range_of(view.slots, slot);
      if (range != nullptr && !refuted.contains(range->master)) {
        const bool failed = doubt_ && doubt_->master == range->master;
        if (!failed) {
          use(std::move(view));
          co_return std::nullopt;
        }
        if (!last_resort) last_resort = std::move(view);
        continue;
      }
      if (range == nullptr) add_fault(faults, fault_at(view.from, no_such_slot()));
    }
    if (!found.faults.text.empty()) add_fault(faults, found.faults);
    for (const Address& source : some) sources_.pass_over(source);
  }
  if (last_resort) {
    use(std::move(*last_resort));
    co_return std::nullopt;
  }
  if (faults.text.empty()) faults = no_such_slot();
  co_return faults;
}

asio::awaitable<SlotMasters::Views> SlotMasters::ask_for_views(std::vector<Address> nodes,
                                                               bool with_epoch, Instant deadline) {
  std::vector<std::optional<Result<ClusterView, Fault>>> answers(nodes.size());
  const auto ask_one = [&](std::size_t i) -> asio::awaitable<void> {
    answers[i] = co_await ask_for_view(node_at_(nodes[i]), nodes[i], with_epoch, deadline);
  };
  co_await run_all(executor_, clock_, nodes.size(), ask_one);

  Views found;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    Result<ClusterView, Fault>& answer = *answers[i];
    if (answer) {
      found.views.push_back(std::move(*answer));
    } else {
      add_fault(found.faults, fault_at(nodes[i], answer.error()));
    }
  }
  co_return found;
}

asio::awaitable<Result<std::vector<ClusterView>, Fault>> SlotMasters::complete_views(
    Instant deadline) {
  const std::vector<Address> asked = first_of(sources_.in_order());
  Views found =
      co_await ask_for_views(asked, /*with_epoch=*/true, time_for_one(clock_.now(), deadline, 2));
  // If only a few nodes of the cluster are configured, those that the newest view names may have
  // newer views.
  found.views = newest_first(std::move(found.views));
  const auto named = std::ranges::find_if(
      found.views, [](const ClusterView& view) { return view.missing_slots() == 0; });
  if (named != found.views.end()) {
    std::vector<Address> others = servers_in(named->slots, /*with_replicas=*/false);
    std::erase_if(others,
                  [&](const Address& one) { return std::ranges::find(asked, one) != asked.end(); });
    Views more = co_await ask_for_views(first_of(std::move(others)), /*with_epoch=*/true, deadline);
    std::ranges::move(more.views, std::back_inserter(found.views));
  }
  std::vector<ClusterView> complete;
  for (ClusterView& view : newest_of(newest_first(std::move(found.views)))) {
    const std::size_t missing = view.missing_slots();
    if (missing == 0) {
      complete.push_back(std::move(view));
    } else {
      add_fault(found.faults,
                fault_at(view.from, {FaultKind::unavailable,
                                     "no server of its cluster has " + std::to_string(missing) +
                                         " of the 16384 slots, so locks in them are not seen"}));
    }
  }
  if (complete.empty()) co_return unexpected(std::move(found.faults));
  use(complete.front());
  co_return complete;
}

void SlotMasters::use(ClusterView view) {
  sources_.prefer(view.from);
  sources_.learn(servers_in(view.slots, /*with_replicas=*/true));
  slots_ = std::move(view.slots);
  source_ = std::move(view.from);
  changed_();
}

void SlotMasters::doubt(const Address& master, std::uint16_t slot) {
  // The question may be old, and the view that led to it replaced. Then its failure does not
  // discredit the new view.
  const SlotRange* range = range_of(slots_, slot);
  if (range != nullptr && range->master != master) return;
  doubt_ = Doubt{master, slot};
  if (range == nullptr) return;
  sources_.pass_over(source_);
  slots_.clear();
}

void SlotMasters::confirm(std::uint16_t slot) {
  if (doubt_ && doubt_->slot == slot) doubt_.reset();
}

void SlotMasters::moved(std::uint16_t slot, const Address& master) {
  std::erase_if(
      slots_, [slot](const SlotRange& range) { return range.first == slot && range.last == slot; });
  slots_.insert(slots_.begin(), SlotRange{slot, slot, master, {}});
  changed_();
}

std::set<Address> SlotMasters::named() const {
  const std::vector<Address> sources = sources_.in_order();
  std::set<Address> all(sources.begin(), sources.end());
  for (const SlotRange& range : slots_) all.insert(range.master);
  return all;
}

}  // namespace redlock::redis
