#include "engine/attempt.hpp"

#include "core/holds.hpp"
#include "core/last_runs.hpp"
#include "core/validity.hpp"
#include "engine/hold_keeper.hpp"
#include "engine/round.hpp"
#include "store/owner_record.hpp"

namespace redlock {
namespace {

struct AcquireBallot : Ballot<AcquireTally> {
  using Ballot::Ballot;
  std::optional<Instant> last_answer;
  bool granted = false;  ///< the attempt has returned a lease
};

/// Whether our id is smaller than that of every other lease with votes. In a split, this lets
/// exactly one of the clients retry first.
bool goes_first(const AcquireTally& tally, std::size_t servers) {
  const LeaseId* ours = nullptr;
  const LeaseId* min_other = nullptr;
  for (std::size_t i = 0; i < servers; ++i) {
    const AcquireVote* vote = tally.vote_of(i);
    if (vote == nullptr) continue;
    if (const auto* granted = std::get_if<Granted>(vote)) ours = &granted->id;
    if (const auto* held = std::get_if<Held>(vote); held != nullptr && !held->holder.shared) {
      if (min_other == nullptr || held->holder.id < *min_other) min_other = &held->holder.id;
    }
  }
  return ours != nullptr && (min_other == nullptr || *ours < *min_other);
}

/// Whether the process that raised the fence is the one that granted: the address may have moved to
/// another server since.
bool granted_it(const AcquireTally& tally, std::size_t server, const ServerFacts& raised) {
  const AcquireVote* vote = tally.vote_of(server);
  const auto* granted = vote != nullptr ? std::get_if<Granted>(vote) : nullptr;
  return granted != nullptr && granted->server.run_id == raised.run_id;
}

/// The order's place among the runs that replace each other; nullopt without --replace.
std::optional<Place> place_of(const AcquireOrder& order) {
  return order.supersession && order.supersession->replaces ? order.supersession->place
                                                            : std::nullopt;
}

Owner owner_of(const AcquireOrder& order) {
  Owner owner = order.owner;
  owner.place = place_of(order);
  if (owner.hold_for) owner.hold_for = order.ttl.length();
  return owner;
}

/// The order with the ttl of an attempt that begins at `t0`.
AcquireOrder as_of(AcquireOrder order, Instant t0) {
  if (order.until)
    order.ttl = Ttl::from(std::max<Duration>(*order.until - t0, Milliseconds(1))).value();
  return order;
}

/// One attempt, from its questions to its decision.
class Attempt {
 public:
  Attempt(ServerSet& server_set, AcquireOrder order, Interrupt& interrupt, AttemptOptions options)
      : server_set_(server_set),
        t0_(server_set.clock().now()),
        order_(as_of(std::move(order), t0_)),
        owner_(owner_of(order_)),
        interrupt_(interrupt),
        options_(std::move(options)),
        token_(Token::draw([&] { return server_set.random(); })),
        ballot_(std::make_shared<AcquireBallot>(server_set, server_set.restart_guard())),
        listener_(interrupt, *ballot_->event) {}

  asio::awaitable<Result<Lease, AttemptFailure>> run() {
    // An interrupted attempt must not hold the lock even for a moment: others would find it busy.
    if (interrupt_.raised())
      co_return unexpected<AttemptFailure>(
          AttemptFailure{AcquireDecision::interrupted, std::nullopt, {}});
    ask_all();
    while ((tally().decision() == AcquireDecision::undecided || may_be_sent_away()) &&
           !interrupt_.raised())
      co_await ballot_->event->wait_until(Instant::max());
    if (const auto why = sent_away(); why && !interrupt_.raised()) co_return fail(*why);
    const AcquireDecision decision = tally().decision();
    if (decision != AcquireDecision::granted) co_await learn_of_holds();
    if (decision != AcquireDecision::granted)
      co_return fail(interrupt_.raised() ? AcquireDecision::interrupted : decision);

    const Fence fence = tally().fence();
    co_await write_back(fence);
    if (interrupt_.raised()) co_return fail(AcquireDecision::interrupted);
    // A late vote may have shown that two of the configured servers are the same one.
    if (tally().decision() == AcquireDecision::duplicate)
      co_return fail(AcquireDecision::duplicate);
    if (at_or_above(fence) < quorum_of(server_set_.size()))
      co_return fail(AcquireDecision::unavailable);
    // Read the clock last: any delay since t0 has used up part of the lease.
    const Instant deadline = redlock::deadline(t0_, order_.ttl);
    if (server_set_.clock().now() + order_.needed_validity >= deadline)
      co_return fail(AcquireDecision::too_slow);
    clear_strays();
    ballot_->granted = true;
    Lease lease{order_.resource, token_, own_id(), fence, order_.ttl, deadline};
    lease.hold = hold_in(order_.mode, tally().slots());
    lease.provenance = Provenance{Duration::zero(), owner_.supervised(), owner_.text()};
    lease.place = place_of(order_);
    if (order_.once_per) lease.fresh = fresh_run(*order_.once_per);
    co_return lease;
  }

  /// After a failure: keeps the holds that it met.
  asio::awaitable<void> keep_holds() {
    if (interrupt_.raised()) co_return;
    co_await redlock::keep_holds(server_set_, order_.resource, shown(), t0_, interrupt_);
  }

 private:
  [[nodiscard]] const AcquireTally& tally() const { return ballot_->tally; }

  [[nodiscard]] bool all_voted() const {
    for (std::size_t i = 0; i < server_set_.size(); ++i)
      if (tally().vote_of(i) == nullptr) return false;
    return true;
  }

  /// If there is a hold of the lock or of the only slot that we want, or we want all slots, waits
  /// for the servers that are slower than the decision, before the attempt is undone there: one
  /// that restarted has to learn the scripts, and may have lost the hold. A hold of another slot,
  /// perhaps of a device that is broken for weeks, delays no attempt.
  asio::awaitable<void> learn_of_holds() {
    const auto found = find_holds(shown());
    const auto matters = [&](const FoundHold& hold) {
      const Hold& how = hold.holder.hold->how;
      return !how.shared || !order_.mode.shared || is_our_slot(how);
    };
    if (std::ranges::none_of(found, matters)) co_return;
    const Instant end = t0_ + server_set_.server_timeout();
    bool in_time = true;
    while (in_time && !all_voted() && !interrupt_.raised())
      in_time = co_await ballot_->event->wait_until(end);
  }

  /// What the servers show besides our own grants.
  [[nodiscard]] std::vector<ShownLock> shown() const {
    std::vector<ShownLock> shown(server_set_.size());
    for (std::size_t i = 0; i < server_set_.size(); ++i) {
      const AcquireVote* vote = tally().vote_of(i);
      if (vote == nullptr) continue;
      const auto* held = std::get_if<Held>(vote);
      shown[i].answered = !std::holds_alternative<Fault>(*vote);
      if (held == nullptr) continue;
      shown[i].holder = &held->holder;
      shown[i].shares = held->holds;
    }
    return shown;
  }

  /// The hold of the only slot that we want, if a quorum shows it.
  [[nodiscard]] std::optional<Holder> hold_of_our_slot() const {
    for (FoundHold& found : find_holds(shown())) {
      const bool is_ours = is_our_slot(found.holder.hold->how);
      if (is_ours && found.shows >= quorum_of(server_set_.size())) return std::move(found.holder);
    }
    return std::nullopt;
  }

  /// Whether this is the only slot that we want.
  [[nodiscard]] bool is_our_slot(const Hold& how) const {
    if (order_.mode.only.size() != 1) return false;
    if (!how.slot_names.empty()) return how.slot_names == order_.mode.only;
    return !how.slots.empty() && std::to_string(how.slots.front()) == order_.mode.only.front();
  }

  void ask_all() {
    AcquireRequest request{
        order_.resource, token_,         order_.ttl,   owner_,
        order_.mode,     options_.slots, std::nullopt, order_.supersession != nullptr};
    request.wants_runs = order_.once_per.has_value();
    request.max_waiting = order_.max_waiting;
    if (const auto place = place_of(order_))
      request.replacement =
          StopRequest{order_.owner.host, order_.owner.user, order_.owner.note, place};
    const Instant answer_by = t0_ + server_set_.server_timeout();
    for (std::size_t i = 0; i < server_set_.size(); ++i) {
      if (options_.member != nullptr) {
        request.entry = options_.member->entry(i);
      } else if (options_.unqueued_entry != nullptr) {
        request.entry = options_.unqueued_entry->entry(i);
        request.entry->life = Milliseconds::zero();
      }
      ask(
          server_set_, std::shared_ptr<Ballot<AcquireTally>>(ballot_), i,
          [request, answer_by](LockServer& server) { return server.acquire(request, answer_by); },
          [ballot = ballot_, &server_set = server_set_, &clock = server_set_.clock(), i,
           on_silence = options_.on_silence](const AcquireVote& vote) {
            if (ballot->granted && ballot->tally.decision() == AcquireDecision::duplicate)
              server_set.report_late_duplicate(i);
            if (is_answer(vote)) {
              ballot->last_answer = clock.now();
            } else if (on_silence) {
              on_silence(i);
            }
          });
    }
  }

  /// Raises the counter of servers that granted a smaller fence, until a quorum has the lease's
  /// fence (R6). Usually no server needs it.
  asio::awaitable<void> write_back(Fence fence) {
    const RaiseRequest request{order_.resource, token_, fence, order_.ttl};
    const Instant answer_by = server_set_.clock().now() + server_set_.server_timeout();
    std::size_t outstanding = 0;
    for (const std::size_t i : tally().granted_below(fence)) {
      ++outstanding;
      spawn(server_set_.executor(),
            [&server = server_set_.server(i), i, request, answer_by, ballot = ballot_,
             raised = raised_]() -> asio::awaitable<void> {
              const RaiseVote vote = co_await server.raise_fence(request, answer_by);
              const auto* done = std::get_if<Raised>(&vote);
              (done != nullptr && granted_it(ballot->tally, i, done->server) ? raised->done
                                                                             : raised->failed) += 1;
              if (const auto* fault = std::get_if<Fault>(&vote))
                raised->faults.push_back({server.name(), *fault});
              ballot->event->notify();
            });
    }
    while (at_or_above(fence) < quorum_of(server_set_.size()) &&
           raised_->done + raised_->failed < outstanding && !interrupt_.raised()) {
      co_await ballot_->event->wait_until(Instant::max());
    }
  }

  [[nodiscard]] std::size_t at_or_above(Fence fence) const {
    return tally().grants() - tally().granted_below(fence).size() + raised_->done;
  }

  [[nodiscard]] std::optional<RunRecord> fresh_run(Duration period) const {
    auto success = fresh_success(tally().runs(), period);
    if (!success) return std::nullopt;
    return RunRecord{std::move(*success), server_set_.clock().now(), /*success=*/true, period,
                     /*passed_on=*/true};
  }

  [[nodiscard]] LeaseId own_id() const {
    for (std::size_t i = 0; i < server_set_.size(); ++i) {
      const AcquireVote* vote = tally().vote_of(i);
      if (vote != nullptr && std::holds_alternative<Granted>(*vote))
        return std::get<Granted>(*vote).id;
    }
    return {};
  }

  /// Removes what does not belong to the lease: grants of other slots; and our queue entry on every
  /// server whose grant did not remove it, or where a late request of an earlier attempt may still
  /// queue it.
  void clear_strays() {
    for (std::size_t i = 0; i < server_set_.size(); ++i) {
      const AcquireVote* vote = tally().vote_of(i);
      const auto* granted = vote != nullptr ? std::get_if<Granted>(vote) : nullptr;
      if (granted != nullptr && granted->slots != tally().slots())
        server_set_.undo(i, order_.resource, token_, order_.ttl, std::nullopt,
                         hold_in(order_.mode, granted->slots));
      if (options_.member == nullptr) continue;
      LockServer& server = server_set_.server(i);
      const std::string waiter = options_.member->entry(i).id;
      if (granted == nullptr) {
        server.leave(order_.resource, waiter);
      } else {
        server.leave_late(order_.resource, waiter);
      }
    }
  }

  /// Undoes the attempt on every server that did not explicitly refuse it. A waiter keeps its
  /// position in the queue there.
  unexpected<AttemptFailure> fail(AcquireDecision why) {
    for (std::size_t i = 0; i < server_set_.size(); ++i) {
      const AcquireVote* vote = tally().vote_of(i);
      if (vote != nullptr &&
          (std::holds_alternative<Held>(*vote) || std::holds_alternative<Queued>(*vote)))
        continue;
      std::optional<Requeue> requeue;
      const bool stays = why != AcquireDecision::superseded && why != AcquireDecision::dismissed;
      if (options_.member != nullptr && stays)
        requeue.emplace(Requeue{options_.member->entry(i), order_.mode, owner_});
      server_set_.undo(i, order_.resource, token_, order_.ttl, std::move(requeue));
    }
    AttemptFailure failure{};
    failure.why = why;
    failure.holder = hold_of_our_slot();
    const Holder* const shown_most = tally().main_holder();
    if (!failure.holder && shown_most != nullptr) failure.holder = *shown_most;
    failure.faults =
        faults_among(server_set_, [this](std::size_t i) { return tally().vote_of(i); });
    failure.faults.insert(failure.faults.end(), raised_->faults.begin(), raised_->faults.end());
    failure.round_trip = server_set_.clock().now() - t0_;
    failure.answered_within = ballot_->last_answer.value_or(server_set_.clock().now()) - t0_;
    if (why == AcquireDecision::guarded) {
      for (const RestartedServer& restarted : tally().restarted()) {
        failure.restarted.push_back(
            {server_set_.server(restarted.server).name(), restarted.up, restarted.left});
      }
    }
    failure.goes_first = goes_first(tally(), server_set_.size());
    failure.may_share = order_.mode.shared && order_.mode.slots == 0 && failure.holder &&
                        failure.holder->shared && failure.holder->owner &&
                        failure.holder->owner->slots == 0 && !failure.holder->owner->hold_for;
    check_queue(failure);
    return unexpected<AttemptFailure>(std::move(failure));
  }

  void check_queue(AttemptFailure& failure) const {
    failure.forgotten.resize(server_set_.size());
    for (std::size_t i = 0; i < server_set_.size(); ++i) {
      const AcquireVote* vote = tally().vote_of(i);
      if (vote == nullptr) continue;
      failure.granted_some = failure.granted_some || std::holds_alternative<Granted>(*vote);
      const QueueStatus* status = queue_status_in(*vote);
      failure.forgotten[i] = status != nullptr && status->queued && !status->was_queued;
    }
    failure.queue = queue_view();
  }

  [[nodiscard]] QueueView queue_view() const {
    std::vector<const QueueStatus*> statuses(server_set_.size());
    std::vector<bool> granted(server_set_.size());
    for (std::size_t i = 0; i < server_set_.size(); ++i) {
      const AcquireVote* vote = tally().vote_of(i);
      if (vote == nullptr) continue;
      granted[i] = std::holds_alternative<Granted>(*vote);
      statuses[i] = queue_status_in(*vote);
    }
    return view_of(statuses, granted, {order_.mode.take, order_.max_waiting});
  }

  /// Why we must not wait any longer, if so many servers say so that the others are no quorum.
  [[nodiscard]] std::optional<AcquireDecision> sent_away() const {
    if (options_.member == nullptr && options_.unqueued_entry == nullptr) return std::nullopt;
    const QueueView view = queue_view();
    if (view.dismissed_by) return AcquireDecision::dismissed;
    if (order_.supersession && view.superseded_by) return AcquireDecision::superseded;
    return std::nullopt;
  }

  /// Whether some servers send us away, and the missing votes decide whether a quorum would still
  /// admit us.
  [[nodiscard]] bool may_be_sent_away() const { return !all_voted() && sent_away(); }

  static const QueueStatus* queue_status_in(const AcquireVote& vote) {
    if (const auto* granted = std::get_if<Granted>(&vote)) return &granted->queue;
    if (const auto* held = std::get_if<Held>(&vote)) return &held->queue;
    if (const auto* queued = std::get_if<Queued>(&vote)) return &queued->queue;
    return nullptr;
  }

  struct Raises {
    std::size_t done = 0;
    std::size_t failed = 0;
    std::vector<ServerFault> faults;
  };

  ServerSet& server_set_;
  Instant t0_;  ///< before the first byte
  AcquireOrder order_;
  OwnerRecord owner_;
  Interrupt& interrupt_;
  AttemptOptions options_;
  Token token_;
  std::shared_ptr<AcquireBallot> ballot_;
  Interrupt::Listener listener_;
  std::shared_ptr<Raises> raised_ = std::make_shared<Raises>();
};

}  // namespace

asio::awaitable<Result<Lease, AttemptFailure>> attempt(ServerSet& server_set, AcquireOrder order,
                                                       Interrupt& interrupt,
                                                       AttemptOptions options) {
  Attempt attempt(server_set, std::move(order), interrupt, std::move(options));
  Result<Lease, AttemptFailure> result = co_await attempt.run();
  if (!result) co_await attempt.keep_holds();
  co_return result;
}

}  // namespace redlock
