#include "fake_world.hpp"

#include <algorithm>
#include <asio/post.hpp>
#include <asio/use_awaitable.hpp>
#include <random>
#include <utility>

#include "core/helper_keys.hpp"
#include "store/local/commands.hpp"
#include "store/local/lua_host.hpp"
#include "store/owner_record.hpp"
#include "support/digest.hpp"

namespace redlock::fake {
namespace {

/// More than any test needs: whoever gets here runs in circles.
constexpr std::size_t max_events = 2'000'000;

constexpr Milliseconds epoch{1'700'000'000'000};

RandomBits seeded(std::uint64_t seed) {
  return [engine = std::mt19937_64(seed)]() mutable {
    return engine();
  };  // NOLINT: reproducible on purpose
}

}  // namespace

class FakeBell final : public Event {
 public:
  explicit FakeBell(const FakeClock& clock) : clock_(clock) {}

  void notify() override {
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
              when, FakeClock::Sleeper{this, [resume, &io = clock_.io_] {
                                         asio::post(io, [resume] { std::move (*resume)(); });
                                       }});
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

std::unique_ptr<Event> FakeClock::make_event() const {
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
  while (!sleepers_.empty() && sleepers_.begin()->first <= now_)
    sleepers_.begin()->second.event->wake();
  return true;
}

void FakeClock::clear() {
  actions_.clear();
  while (!sleepers_.empty()) {
    const auto sleeper = sleepers_.extract(sleepers_.begin());
    sleeper.mapped().event->forget();
  }
}

LeaseId id_of(const std::string& value) {
  return {sha1_hex(value)};
}

FakeStore::FakeStore(const FakeClock& clock)
    : clock_(clock),
      began_(clock.now()),
      keyspace_([this](std::string_view channel, std::string_view message) -> std::int64_t {
        const auto found = subscribers_.find(channel);
        if (found == subscribers_.end()) return 0;
        found->second(message);
        return 1;
      }) {}

void FakeStore::set_time() {
  const auto elapsed = static_cast<double>(Duration(clock_.now() - began_).count()) * rate;
  const auto since = std::chrono::duration_cast<std::chrono::microseconds>(
      Duration(static_cast<Duration::rep>(elapsed)));
  keyspace_.set_time(epoch + std::chrono::duration_cast<Milliseconds>(began_.time_since_epoch()) +
                     wall_offset + since);
}

Instant FakeStore::instant_of(Milliseconds wall) const {
  const Milliseconds since = wall - epoch -
                             std::chrono::duration_cast<Milliseconds>(began_.time_since_epoch()) -
                             wall_offset;
  return began_ +
         Duration(static_cast<Duration::rep>(static_cast<double>(Duration(since).count()) / rate));
}

Reply FakeStore::run(const ScriptCall& call) {
  static local::LuaHost lua;
  set_time();
  return lua.run(keyspace_, scripts::text, call.keys, call.arguments);
}

Reply FakeStore::tell(std::vector<std::string> command) {
  set_time();
  return local::execute(keyspace_, command);
}

std::vector<Resource> FakeStore::list() {
  set_time();
  std::vector<Resource> resources;
  for (const auto& [key, entry] : keyspace_.live()) {
    if (auto resource = HelperKeys::resource_of_owner(key))
      resources.push_back(std::move(*resource));
  }
  std::ranges::reverse(resources);  // SCAN has no order either
  return resources;
}

std::optional<FakeStore::Lock> FakeStore::lock(const Resource& resource) {
  const Reply value = tell({"GET", resource.key()});
  if (value.type != Reply::Type::text) return std::nullopt;
  Lock lock;
  lock.value = value.text;
  const local::Entry* entry = keyspace_.find(resource.key());
  if (entry->expires) lock.expires = instant_of(*entry->expires);
  const Reply owner = tell(
      {"HMGET", HelperKeys(resource).owner(), "lease", "fence", "since", "supervised", "record"});
  lock.foreign = owner.elements[0].text != id_of(value.text).text;
  if (lock.foreign) return lock;
  lock.fence = Fence::from_text(owner.elements[1].text).value_or(Fence());
  lock.since = instant_of(Milliseconds(std::stoll(owner.elements[2].text)));
  lock.owner = decode_owner(owner.elements[4].text).value_or(Owner{});
  lock.owner.supervised = owner.elements[3].text == "1";
  return lock;
}

std::uint64_t FakeStore::counter(const Resource& resource) {
  const Reply stored = tell({"GET", HelperKeys(resource).fence()});
  return stored.type == Reply::Type::text ? std::stoull(stored.text) : 0;
}

void FakeStore::set_counter(const Resource& resource, std::uint64_t value) {
  tell({"SET", HelperKeys(resource).fence(), std::to_string(value)});
}

std::vector<std::string> FakeStore::waiting(const Resource& resource) {
  const HelperKeys helper(resource);
  std::vector<std::string> names;
  for (const Reply& id : tell({"ZRANGE", helper.queue(), "0", "-1"}).elements) {
    const std::string entry = tell({"HGET", helper.waiters(), id.text}).text;
    const auto owner = decode_owner(entry.substr(std::min(entry.find('{'), entry.size())));
    names.push_back(owner ? owner->command : "");
  }
  return names;
}

void FakeStore::hold_foreign(const Resource& resource, const std::string& value,
                             std::optional<Duration> remaining) {
  std::vector<std::string> set{"SET", resource.key(), value};
  if (remaining) {
    const auto life = std::chrono::ceil<Milliseconds>(
        Duration(static_cast<Duration::rep>(static_cast<double>(remaining->count()) * rate)));
    set.insert(set.end(), {"PX", std::to_string(life.count())});
  }
  tell(set);
  tell({"DEL", HelperKeys(resource).owner()});
}

void FakeStore::forget_owner(const Resource& resource) {
  tell({"DEL", HelperKeys(resource).owner()});
}

Line FakeServer::route(Question question) const {
  if (random_line) return random_line();
  const auto found = line_for.find(question);
  return found == line_for.end() ? line : found->second;
}

namespace {

Question question_of(const ScriptCall& call) {
  if (call.script == &scripts::acquire) return Question::acquire;
  if (call.script == &scripts::raise_fence) return Question::raise_fence;
  if (call.script == &scripts::extend) return Question::extend;
  if (call.script == &scripts::heal) return Question::heal;
  if (call.script == &scripts::release) return Question::release;
  if (call.script == &scripts::break_lock) return Question::break_lock;
  if (call.script == &scripts::leave) return Question::leave;
  return Question::inspect;
}

}  // namespace

template <class Answer, class Act>
asio::awaitable<Result<Answer, Fault>> FakeServer::ask(Question question, std::string token,
                                                       Instant deadline, Act act) {
  struct Mail {
    std::unique_ptr<Event> event;
    std::optional<Result<Answer, Fault>> answer;
  };
  log_.push_back({question, clock_.now(), token});
  const Line fate = route(question);
  const auto mail = std::make_shared<Mail>(Mail{clock_.make_event(), std::nullopt});
  if (!fate.silent) {
    // Travels by itself: it arrives and is done whether or not anybody still waits for the answer.
    clock_.at(arrival(fate.request), [this, fate, mail, act] {
      if (!store_.up) return;
      Result<Answer, Fault> answer =
          fate.fault ? Result<Answer, Fault>(unexpected(*fate.fault)) : act(store_);
      if (fate.reply_lost) return;
      clock_.at(clock_.now() + fate.reply, [mail, answer = std::move(answer)] {
        mail->answer = answer;
        mail->event->notify();
      });
    });
  }
  co_await mail->event->wait_until(deadline);
  if (mail->answer) co_return std::move(*mail->answer);
  co_return unexpected(Fault{FaultKind::silent, "no answer in time"});
}

asio::awaitable<ScriptReply> FakeServer::call(ScriptCall call, Instant deadline) {
  const UndoTarget undo_target = undo_target_of(call);
  left_.insert({undo_target.token, undo_target.waiter});
  const std::string token = call.arguments.empty() ? "" : call.arguments.front();
  return ask<Reply>(question_of(call), token, deadline,
                    [call](FakeStore& store) -> Result<Reply, Fault> {
                      Reply reply = store.run(call);
                      if (reply.type == Reply::Type::error)
                        return unexpected(Fault{FaultKind::garbage, reply.text});
                      return reply;
                    });
}

void FakeServer::post(ScriptCall call, NotUndone not_undone) {
  const std::string& what = undone_by(call);
  const Question question = call.script == &scripts::release ? Question::undo : Question::leave;
  log_.push_back({question, clock_.now(), what});
  const Line fate = route(question);
  if (fate.fault && fate.fault->refused && not_undone && left_.contains(what))
    clock_.at(clock_.now() + fate.request, not_undone);
  if (fate.silent || fate.fault || !left_.contains(what)) return;
  clock_.at(arrival(fate.request), [this, call] {
    if (store_.up) store_.run(call);
  });
}

asio::awaitable<Result<LockList, Fault>> FakeServer::list(Listed /*listed*/, Instant deadline) {
  return ask<LockList>(Question::list, {}, deadline, [](FakeStore& store) {
    return LockList{store.list(), {}};
  });
}

asio::awaitable<std::optional<Fault>> FakeServer::subscribe(
    Resource resource, std::string waiter, std::function<void(Notification)> notified,
    Instant deadline) {
  const std::string channel = HelperKeys(resource).wake(waiter);
  channel_ = channel;
  const auto act = [this, channel, notified](FakeStore& store) -> Result<bool, Fault> {
    store.subscribe(channel, [this, notified](std::string_view word) {
      const auto call = notification_from(word);
      if (call)
        clock_.at(clock_.now() + route(Question::listen).reply,
                  [notified, call] { notified(*call); });
    });
    return true;
  };
  const auto answer = co_await ask<bool>(Question::listen, {}, deadline, act);
  if (answer) co_return std::nullopt;
  notified(Notification::disconnected);  // as when a connection ends
  co_return answer.error();
}

void FakeServer::unsubscribe() {
  if (channel_) store_.unsubscribe(*std::exchange(channel_, std::nullopt));
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

std::vector<std::unique_ptr<LockServer>> connect(FakeClock& clock,
                                                 const std::vector<FakeStore*>& stores,
                                                 std::vector<FakeServer*>& servers) {
  std::vector<std::unique_ptr<LockServer>> owned;
  for (FakeStore* store : stores) {
    auto server =
        std::make_unique<FakeServer>(clock, *store, "fake://" + std::to_string(owned.size()));
    servers.push_back(server.get());
    owned.push_back(std::move(server));
  }
  return owned;
}

}  // namespace

Client::Client(asio::any_io_executor executor, FakeClock& world_clock,
               const std::vector<FakeStore*>& stores, std::uint64_t seed, Duration timeout,
               Duration restart_guard)
    : own_clock(world_clock),
      server_set(std::move(executor), own_clock, seeded(seed),
                 connect(world_clock, stores, servers), timeout, restart_guard) {}

void Client::every_queue(const Line& fate) const {
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
  return clients_.emplace_back(io_->get_executor(), clock_, all, guarded_seed, server_timeout,
                               restart_guard);
}

void World::count_event() {
  if (++events_ > max_events) throw std::runtime_error("runs in circles");
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
  return static_cast<std::size_t>(
      std::ranges::count_if(stores_, [&](FakeStore& store) { return !store.is_free(resource); }));
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
