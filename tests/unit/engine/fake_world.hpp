#pragma once

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/attempt.hpp"
#include "engine/electorate.hpp"
#include "engine/interrupt.hpp"
#include "store/lock_server.hpp"
#include "support/clock.hpp"
#include "support/spawn.hpp"

/// A world for the engine without a network and without real time: a clock that jumps from event to event, stores in memory that behave as
/// the scripts do, and lines to them that delay and lose what they carry. The same test always takes the same course.
namespace redlock::fake {

class FakeBell;

/// Virtual time. Stands still while anything can run, then jumps to the next event.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(asio::io_context& io) : io_(io) {}

  [[nodiscard]] Instant now() const override { return now_; }
  [[nodiscard]] Milliseconds wall() const override;
  [[nodiscard]] std::unique_ptr<Bell> make_bell() const override;

  /// Has the world do something at that time, before whatever sleeps until then.
  void at(Instant when, std::function<void()> action) { actions_.emplace(when, std::move(action)); }

  /// Stops the machine for that long: whatever is due meanwhile is seen only then.
  void pause(Duration span) { now_ += span; }

  /// Jumps to the next event; false when there is none.
  bool advance();

  /// Forgets all events, and destroys the coroutines that wait for them.
  void clear();

 private:
  friend class FakeBell;
  struct Sleeper {
    FakeBell* bell;
    std::function<void()> wake;
  };
  using Sleepers = std::multimap<Instant, Sleeper>;

  asio::io_context& io_;
  Instant now_{std::chrono::seconds(1000)};
  std::multimap<Instant, std::function<void()>> actions_;
  mutable Sleepers sleepers_;
};

/// The clock as one client has it: its wall clock may be wrong.
class ClientClock final : public Clock {
 public:
  explicit ClientClock(const FakeClock& clock) : clock_(clock) {}
  [[nodiscard]] Instant now() const override { return clock_.now(); }
  [[nodiscard]] Milliseconds wall() const override { return clock_.wall() + wall_offset; }
  [[nodiscard]] std::unique_ptr<Bell> make_bell() const override { return clock_.make_bell(); }

  Milliseconds wall_offset{};

 private:
  const FakeClock& clock_;
};

/// What one server keeps, and what the scripts do to it.
class FakeStore {
 public:
  struct Lock {
    std::string value;
    bool foreign = false;
    std::optional<Instant> expires;
    Fence fence;
    Instant since;
    Owner owner;
  };

  explicit FakeStore(const FakeClock& clock) : clock_(clock) {}

  AcquireVote acquire(const AcquireRequest& request);
  RaiseVote raise_fence(const RaiseRequest& request);
  ExtendVote extend(const ExtendRequest& request);
  HealVote heal(const HealRequest& request);
  ReleaseVote release(const ReleaseRequest& request);
  BreakVote break_lock(const Resource& resource, std::optional<Fence> only_if);
  InspectVote inspect(const Resource& resource);
  std::vector<Resource> list();

  /// What lies under the key now.
  const Lock* lock(const Resource& resource) { return entry(resource).lock ? &*entry(resource).lock : nullptr; }
  [[nodiscard]] bool is_free(const Resource& resource) { return lock(resource) == nullptr; }
  std::uint64_t& counter(const Resource& resource) { return entry(resource).counter; }

  /// A lock that another library took; without `remaining` it never ends.
  void hold_foreign(const Resource& resource, const std::string& value, std::optional<Duration> remaining);
  void drop(const Resource& resource) { entry(resource).lock.reset(); }
  /// The lock's record, not the lock.
  void forget_owner(const Resource& resource) {
    entry(resource).lock->fence = Fence();
    entry(resource).lock->owner = Owner{};
  }
  void lose_everything() { entries_.clear(); }
  void restart() {
    lose_everything();
    started = clock_.now();
  }

  Instant started{};           ///< long ago
  bool up = true;              ///< a store that is down reads nothing and keeps everything
  double rate = 1;             ///< how fast its clock runs, which decides when keys expire
  Milliseconds wall_offset{};  ///< how wrong its wall clock is

 private:
  struct Entry {
    std::optional<Lock> lock;
    std::uint64_t counter = 0;
    std::set<std::string> released_by_hand;
  };

  /// The entry, once what has expired is gone.
  Entry& entry(const Resource& resource);
  [[nodiscard]] bool is_ours(const Entry& entry, const Token& token) const { return entry.lock && entry.lock->value == token.secret(); }
  [[nodiscard]] NotOurs not_ours(const Entry& entry, const Token& token) const;
  [[nodiscard]] Holder holder(const Lock& lock) const;
  [[nodiscard]] Instant end_of(Ttl ttl) const;

  const FakeClock& clock_;
  std::map<Resource, Entry> entries_;
};

LeaseId id_of(const std::string& value);

enum class Question { acquire, raise_fence, extend, heal, release, break_lock, inspect, list, take_back };

/// How one question fares.
struct Line {
  Duration request{};            ///< on the way to the server
  Duration reply{};              ///< and back
  bool silent = false;           ///< never arrives
  bool reply_lost = false;       ///< arrives and is done, but nobody hears of it
  std::optional<Fault> fault{};  ///< the server says this and does nothing
};

/// A client's connection to a store. Keeps the order of what it carries.
class FakeServer final : public LockServer {
 public:
  struct Asked {
    Question question;
    Instant at;  ///< when it was sent
    std::string token;
  };

  FakeServer(FakeClock& clock, FakeStore& store, std::string name) : clock_(clock), store_(store), name_(std::move(name)) {}

  [[nodiscard]] const std::string& name() const override { return name_; }
  asio::awaitable<AcquireVote> acquire(AcquireRequest request, Instant deadline) override;
  asio::awaitable<RaiseVote> raise_fence(RaiseRequest request, Instant deadline) override;
  asio::awaitable<ExtendVote> extend(ExtendRequest request, Instant deadline) override;
  asio::awaitable<HealVote> heal(HealRequest request, Instant deadline) override;
  asio::awaitable<ReleaseVote> release(ReleaseRequest request, Instant deadline) override;
  asio::awaitable<BreakVote> break_lock(Resource resource, std::optional<Fence> only_if, Instant deadline) override;
  asio::awaitable<InspectVote> inspect(Resource resource, Instant deadline) override;
  asio::awaitable<Result<std::vector<Resource>, Fault>> list(Instant deadline) override;
  void take_back(const Resource& resource, const Token& token) override;
  asio::awaitable<void> close(Instant deadline) override;

  /// Everything that was sent, in order; and when a kind of question was.
  [[nodiscard]] const std::vector<Asked>& log() const noexcept { return log_; }
  [[nodiscard]] std::vector<Instant> asked(Question question) const;
  [[nodiscard]] std::vector<std::string> tokens(Question question) const;

  Line line;                              ///< for every question
  std::map<Question, Line> line_for;      ///< unless this has one
  std::function<Line()> random_line;      ///< unless this is set
  std::optional<Instant> close_deadline;  ///< what close() was told

 private:
  template <class Vote, class Act>
  asio::awaitable<Vote> ask(Question question, std::string token, Instant deadline, Act act);
  Line route(Question question) const;
  Instant arrival(Duration delay) { return last_arrival_ = std::max(last_arrival_, clock_.now() + delay); }

  FakeClock& clock_;
  FakeStore& store_;
  std::string name_;
  std::vector<Asked> log_;
  std::set<std::string> acquired_;  ///< tokens that an acquire or a heal carried
  Instant last_arrival_{};
};

/// One process: its servers, in configured order, and its electorate.
struct Client {
  Client(asio::any_io_executor executor, FakeClock& world_clock, const std::vector<FakeStore*>& stores, std::uint64_t seed,
         Duration timeout, Duration restart_guard = Duration::zero());

  [[nodiscard]] FakeServer& server(std::size_t index) const { return *servers[index]; }
  void every_line(const Line& fate) const;

  ClientClock own_clock;
  std::vector<FakeServer*> servers;  ///< owned by the electorate
  Electorate electorate;
  Interrupt interrupt;
};

inline constexpr Milliseconds server_timeout{500};

class World {
 public:
  explicit World(std::size_t stores = 3);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  [[nodiscard]] FakeClock& clock() noexcept { return clock_; }
  [[nodiscard]] Instant now() const { return clock_.now(); }
  [[nodiscard]] Duration since_start() const { return clock_.now() - start_; }
  [[nodiscard]] FakeStore& store(std::size_t index) { return stores_[index]; }
  [[nodiscard]] std::size_t size() const noexcept { return stores_.size(); }

  /// A client of all stores, or of those given.
  Client& client(std::uint64_t seed = 1, Duration timeout = server_timeout);
  Client& client_of(const std::vector<std::size_t>& stores);
  Client& guarded_client(Duration restart_guard);

  /// Has the world do something that long from now.
  void in(Duration delay, std::function<void()> action) { clock_.at(clock_.now() + delay, std::move(action)); }

  /// Runs the coroutine to its end, and everything else for as long. Throws when it is stuck.
  template <class T>
  T run(asio::awaitable<T> task) {
    std::optional<T> result;
    spawn(io_->get_executor(), [&result, &task]() -> asio::awaitable<void> { result.emplace(co_await std::move(task)); });
    drive([&] { return result.has_value(); });
    return std::move(*result);
  }

  /// Starts a coroutine that runs beside others.
  template <class Coroutine>
  void start(Coroutine coroutine) {
    spawn(io_->get_executor(), std::move(coroutine));
  }

  /// Runs until nothing is left to happen.
  void settle();
  void settle_for(Duration span);

  /// In how many stores something lies under the key.
  std::size_t stores_in_use(const Resource& resource);

 private:
  void poll();
  void drive(const std::function<bool()>& finished);
  void count_event();

  std::unique_ptr<asio::io_context> io_ = std::make_unique<asio::io_context>();
  FakeClock clock_;
  Instant start_;
  std::deque<FakeStore> stores_;
  std::deque<Client> clients_;
  std::size_t events_ = 0;
};

Resource resource(std::string_view key = "deploy");
Ttl ttl(Duration span);
AcquireOrder order(Duration length = std::chrono::seconds(10), Duration needed_validity = Duration::zero());

}  // namespace redlock::fake
