#include "session.hpp"

#include <algorithm>
#include <utility>

#include "core/validity.hpp"
#include "world.hpp"

namespace redlock::sim {
namespace {

std::string describe(const SessionPlan& plan) {
  const std::string mode =
      !plan.mode.only.empty()
          ? fmt::format(", {} of the slots {}", plan.mode.take, fmt::join(plan.mode.only, ","))
      : plan.mode.slots > 0 ? fmt::format(", {} of {} slots", plan.mode.take, plan.mode.slots)
      : plan.mode.shared    ? ", shared"
                            : "";
  const std::string wait =
      plan.wait.wait ? fmt::format("waits {:.0f} ms", in_ms(*plan.wait.wait)) : "waits for ever";
  const std::string keys = plan.keys > 1        ? ", both locks"
                           : plan.first_key > 0 ? ", the second lock"
                                                : "";
  const std::string priority = plan.priority > 0 ? fmt::format(", priority {}", plan.priority) : "";
  return fmt::format("ttl {} ms, work {:.0f} ms, {}{}{}{}{}", plan.ttl.count(), in_ms(plan.work),
                     wait, mode, keys, priority,
                     plan.replaces     ? ", newest wins and replaces"
                     : plan.supersedes ? ", newest wins"
                                       : "");
}

}  // namespace

const char* word_for(AcquireDecision why) {
  using Why = AcquireDecision;
  switch (why) {
    case Why::busy:
      return "busy";
    case Why::maybe_busy:
      return "maybe busy";
    case Why::split:
      return "split";
    case Why::unavailable:
      return "unavailable";
    case Why::denied:
      return "denied";
    case Why::misconfigured:
      return "misconfigured";
    case Why::duplicate:
      return "duplicate";
    case Why::guarded:
      return "guarded";
    case Why::too_slow:
      return "too slow";
    case Why::interrupted:
      return "interrupted";
    case Why::parent_too_weak:
      return "parent too weak";
    case Why::held_around_us:
      return "held around us";
    case Why::queue_full:
      return "queue full";
    case Why::stopped:
      return "stopped";
    case Why::superseded:
      return "superseded";
    case Why::dismissed:
      return "dismissed";
    case Why::undecided:
    case Why::granted:
      break;
  }
  return "unknown";
}

Session::Session(World& world, SessionPlan plan, std::string name)
    : world_(world),
      plan_(plan),
      process_(&world.new_process(plan.host, std::move(name))),
      event_(process_->make_event()) {}

asio::awaitable<void> Session::live() {
  const std::shared_ptr<ServerSet> server_set =
      world_.new_server_set(*process_, plan_.server_timeout);
  world_.history().add("{} starts on host {}: {}", process_->name(), plan_.host + 1,
                       describe(plan_));
  waiting_ = true;
  waiting_since_ = world_.timeline().now();
  if (plan_.style == SessionPlan::Style::handed) {
    const std::optional<Lease> lease = co_await acquire_bare(*server_set);
    world_.finished(*process_);
    co_await server_set->close(lease ? CloseMode::linger : CloseMode::drain);
    leave_behind(*server_set);
    process_->end();
    if (lease) co_await work_by_hand(*lease);
  } else {
    const std::shared_ptr<HeldSet> set = co_await acquire(*server_set);
    if (set && set->leases().front().fresh) {
      co_await leave_out(set);
    } else if (set) {
      co_await work_under(set);
    }
    world_.finished(*process_);
    co_await server_set->close(set ? CloseMode::linger : CloseMode::drain);
    leave_behind(*server_set);
    process_->end();
  }
  over_ = true;
}

void Session::leave_behind(ServerSet& from) {
  std::vector<Leftover> leftovers = from.leftovers();
  auto unconfirmed = from.take_unconfirmed();
  if (leftovers.empty() && !unconfirmed) return world_.left_nothing(*process_);
  world_.history().add("{} leaves {} attempts for another process to undo", process_->name(),
                       leftovers.size());
  Process& other = world_.new_process(plan_.host, process_->name() + "b");
  world_.referees().each([&](Referee& referee) { referee.inherits(other, *process_); });
  world_.start([this, &other, leftovers = std::move(leftovers),
                unconfirmed = std::move(unconfirmed)]() -> asio::awaitable<void> {
    const std::shared_ptr<ServerSet> server_set =
        world_.new_server_set(other, plan_.server_timeout);
    for (const Leftover& leftover : leftovers) server_set->clear_away(leftover);
    if (unconfirmed) {
      server_set->leave(*unconfirmed);
      Interrupt interrupt;
      co_await release_unconfirmed(*server_set, interrupt);
    }
    co_await server_set->all_cleared();
    world_.finished(other);
    world_.left_nothing(*process_);
    co_await server_set->close(CloseMode::immediate);
    other.end();
  });
}

void Session::kill() {
  if (process_->ended()) return;
  world_.history().add("{} is KILLED", process_->name());
  killed_ = true;
  if (waiting_) waited_until_ = world_.timeline().now();
  if (nested_ != nullptr) std::exchange(nested_, nullptr)->end();
  world_.referees().each([this](Referee& referee) { referee.killed(*process_); });
  process_->end();
}

AcquireOrder Session::order(std::size_t key) const {
  const Ttl ttl = Ttl::from(plan_.ttl).value();
  Owner owner;
  owner.host = world_.name_of_host(plan_.host);
  owner.supervised = plan_.style == SessionPlan::Style::run;
  owner.slots = plan_.mode.slots;
  owner.take = plan_.mode.take;
  owner.priority = plan_.priority;
  AcquireOrder order{world_.resource(key), ttl, owner, margin(ttl)};
  order.mode = plan_.mode;
  if (plan_.supersedes) {
    order.supersession = std::make_shared<Supersession>();
    order.supersession->replaces = plan_.replaces;
  }
  order.once_per = plan_.once_per;
  order.max_waiting = plan_.max_waiting;
  return order;
}

void Session::note_grant(std::vector<Lease> leases, Instant deadline) {
  waiting_ = false;
  waited_until_ = world_.timeline().now();
  held_ = true;
  world_.note_grant(*this);
  for (Lease& lease : leases) {
    lease.deadline = deadline;
    Referee& referee = world_.referee(lease.resource);
    referee.granted(*process_, lease);
    const std::set<std::string> slots = slots_of(lease.hold);
    const std::size_t wanted = plan_.mode.slots > 0 ? plan_.mode.take : 0;
    const bool are_ours = std::ranges::all_of(
        slots, [&](const std::string& slot) { return is_in(plan_.mode, slot); });
    if (lease.hold.shared != plan_.mode.shared || slots.size() != wanted || !are_ours) {
      referee.violate("grant", process_->name() + " did not get what it asked for");
    }
  }
}

bool Session::note_failure(const WaitFailure& failed) {
  const AttemptFailure& failure = failed.failure;
  world_.note_failure(failure.why);
  if (failure.queue.queued && !queued_since_) queued_since_ = world_.timeline().now();
  world_.history().add(
      "{} {}: {}{}", process_->name(), failed.final ? "GIVES UP" : "waits", word_for(failure.why),
      failure.queue.queued ? fmt::format(", {} in the queue before it", failure.queue.ahead) : "");
  if (!failed.final) return false;
  waiting_ = false;
  waited_until_ = world_.timeline().now();
  gave_up_ = failure.why;
  if (failure.why == AcquireDecision::superseded)
    world_.referee(world_.resource(plan_.first_key)).gave_way(*process_);
  if (failure.why == AcquireDecision::dismissed)
    world_.referee(world_.resource(plan_.first_key)).was_sent_away(*process_);
  world_.note_giving_up(*this);
  return true;
}

asio::awaitable<std::shared_ptr<HeldSet>> Session::acquire(ServerSet& server_set) {
  std::vector<AcquireOrder> orders;
  for (std::size_t i = 0; i < plan_.keys; ++i) orders.push_back(order(plan_.first_key + i));
  SetWaiter waiter(server_set, std::move(orders), plan_.wait, interrupt_);
  for (;;) {
    auto set = co_await waiter.next();
    if (set) {
      note_grant((*set)->leases(), (*set)->deadline());
      co_return std::move(*set);
    }
    if (note_failure(set.error())) co_return nullptr;
  }
}

/// Without a HeldSet, which would check once more whether the lease is still valid.
asio::awaitable<std::optional<Lease>> Session::acquire_bare(ServerSet& server_set) {
  Waiter waiter(server_set, order(plan_.first_key), plan_.wait, interrupt_);
  for (;;) {
    auto lease = co_await waiter.next();
    if (lease) {
      note_grant({*lease}, lease->deadline);
      co_return std::move(*lease);
    }
    if (note_failure(lease.error())) co_return std::nullopt;
  }
}

asio::awaitable<void> Session::watch(std::shared_ptr<HeldSet> set) {
  for (;;) {
    const auto event = co_await set->next();
    if (!event) co_return;
    std::visit([&](const auto& what) { note(*set, what); }, *event);
  }
}

void Session::note(const HeldSet& set, const SetExtended&) {
  for (const Lease& lease : set.leases()) {
    // Only the keeper knows which round it was. It began no sooner than the deadline says.
    const Instant asked = set.deadline() - (redlock::deadline(Instant(), lease.ttl) - Instant());
    world_.referee(lease.resource)
        .extended(*process_, lease.token, set.deadline(), process_->true_time(asked));
  }
}

void Session::note(const HeldSet&, const SetInTrouble& event) {
  world_.referee(event.resource).in_trouble(*process_, event.trouble);
}

void Session::note(const HeldSet& set, const SetEnded& event) {
  const Resource& resource = event.resource;
  for (const Lease& lease : set.leases()) {
    if (lease.resource == resource)
      world_.referee(resource).ended(*process_, lease.token, event.end);
  }
  lease_ended_ = true;
  if (world_.schedule().keeps_leases)
    world_.referee(resource).violate("kept", process_->name() + " loses its lease without need");
  event_->notify();
}

void Session::note(const HeldSet& set, const StopRequested& asked) {
  Referee& referee = world_.referee(asked.resource);
  for (const Lease& lease : set.leases()) {
    if (lease.resource != asked.resource) continue;
    if (!asked.request.newer) {
      referee.stop_requested(*process_, lease.token, asked.request.reason);
    } else if (plan_.replaces) {
      referee.replaced(*process_, *asked.request.newer);
    } else {
      referee.violate("stop", process_->name() + " is replaced, and was not to be");
    }
  }
  stop_requested_ = true;
  event_->notify();
}

asio::awaitable<void> Session::leave_out(std::shared_ptr<HeldSet> set) {
  world_.left_out(*this);
  stopped_ = true;
  const Lease lease = set->leases().front();
  world_.referee(lease.resource).stopped(*process_, lease.token);
  const SetReleaseResult result = co_await set->release();
  world_.referee(lease.resource).released(lease.token, result.result);
}

RunRecord Session::record_of(Instant began) const {
  PastRun run;
  run.started = process_->now() - began;
  run.ended = Duration::zero();
  run.result = lease_ended_ ? "lost" : "released";
  run.exit_code = plan_.fails ? 1 : 0;
  return {std::move(run), process_->now(), !plan_.fails && !lease_ended_, *plan_.once_per};
}

asio::awaitable<void> Session::work_under(std::shared_ptr<HeldSet> set) {
  const Lease lease = set->leases().front();
  set->keep();
  plan_uses(lease);
  world_.start([this, set] { return watch(set); });
  if (plan_.hand_extend_at) {
    world_.in(*plan_.hand_extend_at, [this, lease] {
      world_.start([this, lease] { return extend_by_hand(lease, plan_.hand_ttl); });
    });
  }
  if (plan_.hand_release_at) {
    world_.in(*plan_.hand_release_at,
              [this, lease] { world_.start([this, lease] { return release_by_hand(lease); }); });
  }
  // The referee does not know what is left to users of a lease that others extend or release.
  if (plan_.nested_at && !plan_.hand_release_at && !plan_.hand_extend_at) {
    world_.in(*plan_.nested_at, [this, lease] {
      if (!process_->ended() && held_ && !stopped_)
        world_.start([this, lease] { return nest(lease); });
    });
  }
  const Instant began = process_->now();
  const Duration started = world_.timeline().now();
  const Instant end = began + plan_.work;
  // A supervisor reads the clock before anything else. A lease past its deadline ends the work even
  // if no event reported that.
  while (!lease_ended_ && !stop_requested_ && process_->now() < std::min(end, set->deadline()))
    co_await event_->wait_until(std::min(end, set->deadline()));
  const Duration expire_in = lease_ended_ ? Duration::zero() : plan_.expire_in;
  stopped_ = true;
  // Otherwise it is killed with the command.
  const bool leaves_nested = nested_ != nullptr && expire_in == Duration::zero() && !lease_ended_ &&
                             !stop_requested_ && process_->now() < set->deadline();
  if (nested_ != nullptr && !leaves_nested) std::exchange(nested_, nullptr)->end();
  const bool is_left = leaves_nested && nested_uses_lease_;
  const std::vector<Lease> leases = set->leases();
  for (const Lease& one : leases) {
    if (is_left && one.token == lease.token) continue;
    world_.referee(one.resource).stopped(*process_, one.token, expire_in);
  }
  ReleaseTerms terms;
  terms.expire_in = expire_in;
  terms.may_have_users = leaves_nested || !plan_.uses.empty();
  if (plan_.once_per) terms.run = record_of(began);
  if (terms.run && expire_in > Duration::zero()) terms.finished = order(plan_.first_key).owner;
  if (terms.run && terms.run->success) world_.ended_well(started);
  const std::optional<RunRecord> run = terms.run;
  const SetReleaseResult result = co_await set->release(std::move(terms));
  if (run && run->success && result.recorded) world_.recorded(*this, started);
  if (expire_in > Duration::zero()) co_return;
  for (const Lease& one : leases) {
    if (leaves_nested && one.token == lease.token) continue;
    world_.referee(one.resource).released(one.token, result.result);
  }
}

asio::awaitable<void> Session::nest(Lease parent) {
  Process& inner = world_.new_process(plan_.host, process_->name() + "n");
  nested_ = &inner;
  world_.referee(parent.resource).shared(parent.token);
  AcquireOrder order = this->order(plan_.first_key);
  order.owner.renewed_for = plan_.ttl;
  order.parent_claim = ParentClaim{parent.id, parent.token, parent.fence, parent.hold,
                                   [this] { return !process_->ended(); }};
  co_await run_below(inner, std::move(order), plan_.server_timeout, plan_.nested_work);
  if (nested_ == &inner) nested_ = nullptr;
  event_->notify();
}

void Session::plan_uses(const Lease& lease) {
  for (const SessionPlan::Use& plan : plan_.uses) {
    world_.referee(lease.resource).hands_over(lease.token);
    ++users_;
    world_.in(plan.at, [this, lease, plan] {
      world_.start([this, lease, plan] { return use(lease, plan); });
    });
  }
}

asio::awaitable<void> Session::use(Lease lease, SessionPlan::Use plan) {
  Process& user = world_.new_process(plan.host, process_->name() + "u");
  if (plan.dies_after) {
    world_.in(*plan.dies_after, [this, &user, lease] {
      if (user.ended()) return;
      world_.history().add("{} is KILLED", user.name());
      world_.referee(lease.resource).stops_using(user, lease.token);
      user.end();
      --users_;
    });
  }
  AcquireOrder order = this->order(plan_.first_key);
  order.ttl = Ttl::from(plan.ttl).value();
  order.needed_validity = margin(order.ttl);
  order.owner.supervised = true;
  order.owner.renewed_for = plan.ttl;
  order.parent_claim = ParentClaim{lease.id, lease.token, lease.fence, lease.hold};
  const Duration timeout = default_server_timeout(order.ttl);
  co_await run_below(user, std::move(order), timeout, plan.work);
  --users_;
}

asio::awaitable<void> Session::run_below(Process& inner, AcquireOrder order, Duration timeout,
                                         Duration work) {
  const std::shared_ptr<ServerSet> server_set = world_.new_server_set(inner, timeout);
  world_.history().add("{} starts below {}", inner.name(), process_->name());
  const Token parent = order.parent_claim->token;
  WaitPolicy at_once = plan_.wait;
  at_once.wait = Duration::zero();
  Interrupt interrupt;
  std::vector<AcquireOrder> orders;
  orders.push_back(std::move(order));
  SetWaiter waiter(*server_set, std::move(orders), at_once, interrupt);
  for (bool tries = true; tries;) {
    auto set = co_await waiter.next();
    tries = !set && !set.error().final;
    if (set) co_await work_below(inner, parent, std::move(*set), work);
  }
  world_.finished(inner);
  co_await server_set->close(CloseMode::immediate);
  inner.end();
}

asio::awaitable<void> Session::work_below(Process& inner, const Token& parent,
                                          std::shared_ptr<HeldSet> set, Duration work) {
  const Lease lease = set->leases().front();
  Referee& referee = world_.referee(lease.resource);
  if (lease.keeping == Keeping::used) {
    const bool is_nested = nested_ == &inner;
    bool over = false;
    const std::unique_ptr<Event> event = inner.make_event();
    const auto note_extension = [&, is_nested] {
      if (!is_nested) return referee.uses(inner, parent, set->deadline());
      const Instant asked = set->deadline() - (redlock::deadline(Instant(), lease.ttl) - Instant());
      referee.extended(inner, parent, set->deadline(), inner.true_time(asked));
    };
    if (!is_nested) {
      note_extension();
    } else if (stopped_) {
      referee.outlives_holder(inner, parent, set->deadline());
    } else {
      referee.relied_on(inner, parent, set->deadline());
    }
    if (is_nested) nested_uses_lease_ = true;
    set->keep();
    world_.start([&, set]() -> asio::awaitable<void> {
      for (;;) {
        const auto what = co_await set->next();
        if (!what) co_return;
        if (std::holds_alternative<SetExtended>(*what)) note_extension();
        const auto* ended = std::get_if<SetEnded>(&*what);
        over = over || ended != nullptr;
        if (is_nested && ended != nullptr && stopped_) referee.ended(inner, parent, ended->end);
        if (over) event->notify();
      }
    });
    const Instant end = inner.now() + work;
    while (!over && inner.now() < std::min(end, set->deadline()))
      co_await event->wait_until(std::min(end, set->deadline()));
    if (!is_nested) {
      referee.stops_using(inner, parent);
    } else {
      nested_uses_lease_ = false;
      if (stopped_) referee.stopped(inner, parent);
    }
  } else {
    // The parent lease has ended, so the nested run got a lease of its own.
    referee.granted(inner, lease);
    referee.stopped(inner, lease.token);
  }
  (void)co_await set->release();
}

asio::awaitable<void> Session::work_by_hand(Lease lease) {
  Process& script = world_.new_process(plan_.host, process_->name() + "s");
  plan_uses(lease);
  if (plan_.hand_extend_at) {
    co_await sleep_until(script, script.now() + *plan_.hand_extend_at);
    co_await extend_by_hand(lease, plan_.hand_ttl);
  }
  co_await sleep_until(script, script.now() + plan_.work);
  if (!plan_.hand_release_at) co_return;  // the lease expires
  world_.referee(lease.resource).stopped(script, lease.token);
  co_await release_by_hand(lease);
}

asio::awaitable<void> Session::extend_by_hand(Lease lease, Milliseconds ttl) {
  Process& other = world_.new_process(plan_.host, process_->name() + "x");
  const std::shared_ptr<ServerSet> server_set = world_.new_server_set(other, plan_.server_timeout);
  const Ttl length = Ttl::from(ttl).value();
  world_.history().add("{} extends {} by hand, by {} ms", other.name(),
                       lease.token.secret().substr(0, 4), ttl.count());
  world_.referee(lease.resource).shared(lease.token);
  HeldLease held(*server_set, lease.resource, lease.token, lease.fence, lease.hold);
  const ExtendResult result = co_await held.extend(length, Instant::max(), /*by_hand=*/true);
  if (result.decision == ExtendDecision::confirmed) {
    world_.referee(lease.resource)
        .extended(other, lease.token, redlock::deadline(result.t0, length),
                  other.true_time(result.t0));
  }
  world_.finished(other);
  co_await server_set->close(CloseMode::immediate);
  other.end();
}

asio::awaitable<void> Session::release_by_hand(Lease lease) {
  Process& other = world_.new_process(plan_.host, process_->name() + "r");
  const std::shared_ptr<ServerSet> server_set = world_.new_server_set(other, plan_.server_timeout);
  world_.history().add("{} releases {} by hand", other.name(), lease.token.secret().substr(0, 4));
  HeldLease held(*server_set, lease.resource, lease.token, lease.fence, lease.hold);
  const ReleaseResult result = co_await held.release(/*by_hand=*/true);
  Referee& referee = world_.referee(lease.resource);
  if (plan_.style == SessionPlan::Style::run && result.decision == ReleaseDecision::released &&
      !referee.may_seem_unsupervised(lease.token)) {
    referee.violate("theft", other.name() + " released by hand what a run keeps");
  }
  world_.finished(other);
  co_await server_set->close(CloseMode::immediate);
  other.end();
}

}  // namespace redlock::sim
