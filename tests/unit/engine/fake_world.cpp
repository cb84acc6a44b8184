#include "fake_world.hpp"

#include <algorithm>
#include <asio/post.hpp>
#include <asio/use_awaitable.hpp>
#include <random>
#include <utility>

namespace redlock::fake {
namespace {

/// More than any test needs: whoever gets here runs in circles.
constexpr std::size_t most_events = 2'000'000;

constexpr Milliseconds epoch{1'700'000'000'000};
constexpr Milliseconds clock_trust{10'000};

RandomBits seeded(std::uint64_t seed) {
  return [engine = std::mt19937_64(seed)]() mutable { return engine(); };  // NOLINT: reproducible on purpose
}

}  // namespace

class FakeBell final : public Bell {
 public:
  explicit FakeBell(const FakeClock& clock) : clock_(clock) {}

  void ring() override {
    rung_ = true;
    wake();
  }

  asio::awaitable<bool> wait_until(Instant when) override {
    while (!rung_ && clock_.now() < when) co_await sleep(when);
    co_return std::exchange(rung_, false);
  }

  void wake() {
    if (!asleep_) return;
    const auto sleeper = clock_.sleepers_.extract(*std::exchange(asleep_, std::nullopt));
    sleeper.mapped().wake();
  }

  void forget() { asleep_.reset(); }

 private:
  asio::awaitable<void> sleep(Instant when) {
    return asio::async_initiate<const asio::use_awaitable_t<>, void()>(
        [this, when](auto handler) {
          const auto resume = std::make_shared<decltype(handler)>(std::move(handler));
          asleep_ = clock_.sleepers_.emplace(
              when, FakeClock::Sleeper{this, [resume, &io = clock_.io_] { asio::post(io, [resume] { std::move (*resume)(); }); }});
        },
        asio::use_awaitable);
  }

  const FakeClock& clock_;
  bool rung_ = false;
  std::optional<FakeClock::Sleepers::iterator> asleep_;
};

Milliseconds FakeClock::wall() const {
  return epoch + std::chrono::duration_cast<Milliseconds>(now_.time_since_epoch());
}

std::unique_ptr<Bell> FakeClock::make_bell() const {
  return std::make_unique<FakeBell>(*this);
}

bool FakeClock::advance() {
  Instant next = Instant::max();
  if (!actions_.empty()) next = std::min(next, actions_.begin()->first);
  if (!sleepers_.empty()) next = std::min(next, sleepers_.begin()->first);
  if (next == Instant::max()) return false;
  now_ = std::max(now_, next);
  while (!actions_.empty() && actions_.begin()->first <= now_) {
    const auto action = actions_.extract(actions_.begin());
    action.mapped()();
  }
  while (!sleepers_.empty() && sleepers_.begin()->first <= now_) sleepers_.begin()->second.bell->wake();
  return true;
}

void FakeClock::clear() {
  actions_.clear();
  while (!sleepers_.empty()) {
    const auto sleeper = sleepers_.extract(sleepers_.begin());
    sleeper.mapped().bell->forget();
  }
}

LeaseId id_of(const std::string& value) {
  return {"id-" + value};
}

FakeStore::Entry& FakeStore::entry(const Resource& resource) {
  Entry& entry = entries_[resource];
  if (entry.lock && entry.lock->expires && *entry.lock->expires <= clock_.now()) entry.lock.reset();
  return entry;
}

Instant FakeStore::end_of(Ttl ttl) const {
  return clock_.now() + Duration(static_cast<Duration::rep>(static_cast<double>(Duration(ttl.length()).count()) / rate));
}

Holder FakeStore::holder(const Lock& lock) const {
  Holder holder;
  holder.id = id_of(lock.value);
  holder.foreign = lock.foreign;
  if (lock.expires) holder.remaining = *lock.expires - clock_.now();
  if (lock.foreign) return holder;
  holder.age = clock_.now() - lock.since;
  holder.fence = lock.fence;
  holder.owner = lock.owner;
  return holder;
}

NotOurs FakeStore::not_ours(const Entry& entry, const Token& token) const {
  if (entry.released_by_hand.contains(token.secret())) return {NotOurs::Why::released, std::nullopt};
  if (entry.lock) return {NotOurs::Why::held, holder(*entry.lock)};
  return {NotOurs::Why::gone, std::nullopt};
}

AcquireVote FakeStore::acquire(const AcquireRequest& request) {
  Entry& entry = this->entry(request.resource);
  if (is_ours(entry, request.token)) return Duplicate{};
  if (entry.lock) return Held{holder(*entry.lock)};
  const Milliseconds wall = clock_.wall() + wall_offset;
  const Milliseconds floor = std::clamp(request.wall, wall - clock_trust, wall + clock_trust);
  entry.counter = std::max(entry.counter + 1, static_cast<std::uint64_t>(floor.count()));
  entry.lock = Lock{request.token.secret(), false, end_of(request.ttl), Fence(entry.counter), clock_.now(), request.owner};
  return Granted{Fence(entry.counter), id_of(request.token.secret()), ServerFacts{"", clock_.now() - started}};
}

RaiseVote FakeStore::raise_fence(const RaiseRequest& request) {
  Entry& entry = this->entry(request.resource);
  if (!is_ours(entry, request.token)) return NotRaised{};
  entry.counter = std::max(entry.counter, request.fence.value());
  entry.lock->fence = std::max(entry.lock->fence, request.fence);
  return Raised{};
}

ExtendVote FakeStore::extend(const ExtendRequest& request) {
  Entry& entry = this->entry(request.resource);
  if (!is_ours(entry, request.token)) return not_ours(entry, request.token);
  entry.lock->expires = std::max(*entry.lock->expires, end_of(request.ttl));
  return Extended{entry.lock->fence, {clock_.now() - entry.lock->since, entry.lock->owner.supervised, entry.lock->owner.command}};
}

HealVote FakeStore::heal(const HealRequest& request) {
  Entry& entry = this->entry(request.resource);
  if (entry.released_by_hand.contains(request.token.secret())) return NotOurs{NotOurs::Why::released, std::nullopt};
  if (entry.lock && !is_ours(entry, request.token)) return not_ours(entry, request.token);
  entry.counter = std::max(entry.counter, request.fence.value());
  Owner owner;
  owner.command = request.provenance.record;
  owner.supervised = request.provenance.supervised;
  if (!entry.lock) {
    entry.lock = Lock{request.token.secret(), false, end_of(request.ttl), request.fence, clock_.now() - request.provenance.age, owner};
  }
  return Healed{};
}

ReleaseVote FakeStore::release(const ReleaseRequest& request) {
  Entry& entry = this->entry(request.resource);
  if (!is_ours(entry, request.token)) return not_ours(entry, request.token);
  if (request.by_hand && entry.lock->owner.supervised) return Supervised{holder(*entry.lock)};
  if (request.by_hand) entry.released_by_hand.insert(request.token.secret());
  entry.lock.reset();
  return Released{};
}

BreakVote FakeStore::break_lock(const Resource& resource, std::optional<Fence> only_if) {
  Entry& entry = this->entry(resource);
  if (!entry.lock) return NothingToBreak{};
  const Holder before = holder(*entry.lock);
  if (only_if && before.fence != only_if) return OtherFence{before};
  entry.lock.reset();
  return Broken{before};
}

InspectVote FakeStore::inspect(const Resource& resource) {
  const Lock* lock = this->lock(resource);
  if (lock == nullptr) return Free{};
  return Held{holder(*lock)};
}

std::vector<Resource> FakeStore::list() {
  std::vector<Resource> resources;
  for (const auto& [resource, unused] : entries_) {
    if (lock(resource) != nullptr) resources.push_back(resource);
  }
  std::ranges::reverse(resources);  // SCAN has no order either
  return resources;
}

void FakeStore::hold_foreign(const Resource& resource, const std::string& value, std::optional<Duration> remaining) {
  Lock lock{value, true, std::nullopt, Fence(), clock_.now(), {}};
  if (remaining) lock.expires = clock_.now() + *remaining;
  entry(resource).lock = lock;
}

Line FakeServer::route(Question question) const {
  if (random_line) return random_line();
  const auto found = line_for.find(question);
  return found == line_for.end() ? line : found->second;
}

template <class Vote, class Act>
asio::awaitable<Vote> FakeServer::ask(Question question, std::string token, Instant deadline, Act act) {
  struct Mail {
    std::unique_ptr<Bell> bell;
    std::optional<Vote> vote;
  };
  log_.push_back({question, clock_.now(), token});
  if (question == Question::acquire || question == Question::heal) acquired_.insert(token);
  const Line fate = route(question);
  const auto mail = std::make_shared<Mail>(Mail{clock_.make_bell(), std::nullopt});
  if (!fate.silent) {
    // Travels by itself: it arrives and is done whether or not anybody still waits for the answer.
    clock_.at(arrival(fate.request), [this, fate, mail, act] {
      if (!store_.up) return;
      Vote vote = fate.fault ? Vote(*fate.fault) : Vote(act(store_));
      if (fate.reply_lost) return;
      clock_.at(clock_.now() + fate.reply, [mail, vote = std::move(vote)] {
        mail->vote = vote;
        mail->bell->ring();
      });
    });
  }
  co_await mail->bell->wait_until(deadline);
  co_return mail->vote ? *mail->vote : Vote(Fault{FaultKind::silent, "no answer in time"});
}

asio::awaitable<AcquireVote> FakeServer::acquire(AcquireRequest request, Instant deadline) {
  return ask<AcquireVote>(Question::acquire, request.token.secret(), deadline,
                          [request](FakeStore& store) { return store.acquire(request); });
}

asio::awaitable<RaiseVote> FakeServer::raise_fence(RaiseRequest request, Instant deadline) {
  return ask<RaiseVote>(Question::raise_fence, request.token.secret(), deadline,
                        [request](FakeStore& store) { return store.raise_fence(request); });
}

asio::awaitable<ExtendVote> FakeServer::extend(ExtendRequest request, Instant deadline) {
  return ask<ExtendVote>(Question::extend, request.token.secret(), deadline, [request](FakeStore& store) { return store.extend(request); });
}

asio::awaitable<HealVote> FakeServer::heal(HealRequest request, Instant deadline) {
  return ask<HealVote>(Question::heal, request.token.secret(), deadline, [request](FakeStore& store) { return store.heal(request); });
}

asio::awaitable<ReleaseVote> FakeServer::release(ReleaseRequest request, Instant deadline) {
  return ask<ReleaseVote>(Question::release, request.token.secret(), deadline,
                          [request](FakeStore& store) { return store.release(request); });
}

asio::awaitable<BreakVote> FakeServer::break_lock(Resource resource, std::optional<Fence> only_if, Instant deadline) {
  return ask<BreakVote>(Question::break_lock, {}, deadline,
                        [resource, only_if](FakeStore& store) { return store.break_lock(resource, only_if); });
}

asio::awaitable<InspectVote> FakeServer::inspect(Resource resource, Instant deadline) {
  return ask<InspectVote>(Question::inspect, {}, deadline, [resource](FakeStore& store) { return store.inspect(resource); });
}

asio::awaitable<Result<std::vector<Resource>, Fault>> FakeServer::list(Instant deadline) {
  using Listed = std::variant<std::vector<Resource>, Fault>;
  const Listed listed = co_await ask<Listed>(Question::list, {}, deadline, [](FakeStore& store) { return store.list(); });
  if (const auto* fault = std::get_if<Fault>(&listed)) co_return unexpected(*fault);
  co_return std::get<std::vector<Resource>>(listed);
}

void FakeServer::take_back(const Resource& resource, const Token& token) {
  log_.push_back({Question::take_back, clock_.now(), token.secret()});
  const Line fate = route(Question::take_back);
  if (fate.silent || fate.fault || !acquired_.contains(token.secret())) return;
  clock_.at(arrival(fate.request), [this, resource, token] {
    if (store_.up) store_.release({resource, token});
  });
}

asio::awaitable<void> FakeServer::close(Instant deadline) {
  close_deadline = deadline;
  if (line.silent) co_await sleep_until(clock_, deadline);
}

std::vector<Instant> FakeServer::asked(Question question) const {
  std::vector<Instant> times;
  for (const Asked& asked : log_) {
    if (asked.question == question) times.push_back(asked.at);
  }
  return times;
}

std::vector<std::string> FakeServer::tokens(Question question) const {
  std::vector<std::string> tokens;
  for (const Asked& asked : log_) {
    if (asked.question == question) tokens.push_back(asked.token);
  }
  return tokens;
}

namespace {

std::vector<std::unique_ptr<LockServer>> connect(FakeClock& clock, const std::vector<FakeStore*>& stores,
                                                 std::vector<FakeServer*>& servers) {
  std::vector<std::unique_ptr<LockServer>> owned;
  for (FakeStore* store : stores) {
    auto server = std::make_unique<FakeServer>(clock, *store, "fake://" + std::to_string(owned.size()));
    servers.push_back(server.get());
    owned.push_back(std::move(server));
  }
  return owned;
}

}  // namespace

Client::Client(asio::any_io_executor executor, FakeClock& world_clock, const std::vector<FakeStore*>& stores, std::uint64_t seed,
               Duration timeout, Duration restart_guard)
    : own_clock(world_clock),
      electorate(std::move(executor), own_clock, seeded(seed), connect(world_clock, stores, servers), timeout, restart_guard) {}

void Client::every_line(const Line& fate) const {
  for (FakeServer* server : servers) server->line = fate;
}

World::World(std::size_t stores) : clock_(*io_), start_(clock_.now()) {
  for (std::size_t i = 0; i < stores; ++i) stores_.emplace_back(clock_);
}

World::~World() {
  // What still waits refers to the clients, so it goes first.
  clock_.clear();
  io_.reset();
}

Client& World::client(std::uint64_t seed, Duration timeout) {
  std::vector<FakeStore*> all;
  for (FakeStore& store : stores_) all.push_back(&store);
  return clients_.emplace_back(io_->get_executor(), clock_, all, seed, timeout);
}

Client& World::client_of(const std::vector<std::size_t>& stores) {
  std::vector<FakeStore*> some;
  for (const std::size_t i : stores) some.push_back(&stores_[i]);
  return clients_.emplace_back(io_->get_executor(), clock_, some, 1, server_timeout);
}

/// None that tests give to others: the same seed makes the same tokens.
constexpr std::uint64_t guarded_seed = 4711;

Client& World::guarded_client(Duration restart_guard) {
  std::vector<FakeStore*> all;
  for (FakeStore& store : stores_) all.push_back(&store);
  return clients_.emplace_back(io_->get_executor(), clock_, all, guarded_seed, server_timeout, restart_guard);
}

void World::count_event() {
  if (++events_ > most_events) throw std::runtime_error("runs in circles");
}

void World::poll() {
  io_->restart();
  while (io_->poll_one() > 0) count_event();
}

void World::drive(const std::function<bool()>& finished) {
  for (poll(); !finished(); poll()) {
    count_event();
    if (!clock_.advance()) throw std::runtime_error("stuck");
  }
}

void World::settle() {
  for (poll(); clock_.advance(); poll()) count_event();
}

void World::settle_for(Duration span) {
  bool over = false;
  in(span, [&over] { over = true; });
  drive([&over] { return over; });
}

std::size_t World::stores_in_use(const Resource& resource) {
  return static_cast<std::size_t>(std::ranges::count_if(stores_, [&](FakeStore& store) { return !store.is_free(resource); }));
}

Resource resource(std::string_view key) {
  return Resource::from(key).value();
}

Ttl ttl(Duration span) {
  return Ttl::from(span).value();
}

AcquireOrder order(Duration length, Duration needed_validity) {
  return {resource(), ttl(length), Owner{"here", "me", "make", "", 1, false}, needed_validity};
}

}  // namespace redlock::fake
