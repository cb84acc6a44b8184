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
#include "engine/interrupt.hpp"
#include "engine/server_set.hpp"
#include "store/local/keyspace.hpp"
#include "store/scripted_server.hpp"
#include "support/clock.hpp"
#include "support/spawn.hpp"

/// A world for the engine without a network and without real time: a clock that jumps from event to
/// event, stores in memory that run the scripts, and lines to them that delay and lose what they
/// carry. The same test always takes the same course.
namespace redlock::fake {

class FakeBell;

/// Virtual time. Stands still while anything can run, then jumps to the next event.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(asio::io_context& io) : io_(io) {}

  [[nodiscard]] Instant now() const override { return now_; }
  [[nodiscard]] Milliseconds wall() const override;
  [[nodiscard]] std::unique_ptr<Event> make_event() const override;

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
    FakeBell* event;
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
  [[nodiscard]] std::unique_ptr<Event> make_event() const override { return clock_.make_event(); }

  Milliseconds wall_offset{};

 private:
  const FakeClock& clock_;
};

/// What one server keeps. The real scripts run on it.
class FakeStore {
 public:
  /// What lies under a key, and what is known of its holder.
  struct Lock {
    std::string value;
    bool foreign = false;
    std::optional<Instant> expires;
    Fence fence;
    Instant since;
    Owner owner;
  };

  explicit FakeStore(const FakeClock& clock);

  Reply run(const ScriptCall& call);
  std::vector<Resource> list();

  /// Nothing when the key is free.
  std::optional<Lock> lock(const Resource& resource);
  [[nodiscard]] bool is_free(const Resource& resource) { return !lock(resource); }
  std::uint64_t counter(const Resource& resource);
  void set_counter(const Resource& resource, std::uint64_t value);

  /// Who waits, the first in the queue first, as they are named in their owner records' "command".
  std::vector<std::string> waiting(const Resource& resource);

  /// A lock that another library took; without `remaining` it never ends.
  void hold_foreign(const Resource& resource, const std::string& value,
                    std::optional<Duration> remaining);
  void drop(const Resource& resource) { tell({"DEL", resource.key()}); }
  void forget_owner(const Resource& resource);  ///< the lock's record, not the lock
  void lose_everything() { keyspace_.load({}); }
  void restart() {
    lose_everything();
    started = clock_.now();
  }

  void subscribe(const std::string& channel, std::function<void(std::string_view)> notified) {
    subscribers_[channel] = std::move(notified);
  }
  void unsubscribe(const std::string& channel) { subscribers_.erase(channel); }
  /// Tells the word to all who listen here.
  void call_everybody(std::string_view word) const {
    for (const auto& [channel, notified] : subscribers_) notified(word);
  }

  Instant started{};           ///< long ago
  bool up = true;              ///< a store that is down reads nothing and keeps everything
  double rate = 1;             ///< how fast its clock runs, which decides when keys expire
  Milliseconds wall_offset{};  ///< how wrong its wall clock is

 private:
  Reply tell(std::vector<std::string> command);
  void set_time();
  [[nodiscard]] Instant instant_of(Milliseconds wall) const;

  const FakeClock& clock_;
  Instant began_;
  local::Keyspace keyspace_;
  std::map<std::string, std::function<void(std::string_view)>, std::less<>> subscribers_;
};

LeaseId id_of(const std::string& value);

enum class Question {
  acquire,
  raise_fence,
  extend,
  heal,
  release,
  break_lock,
  inspect,
  list,
  undo,
  leave,
  listen
};

/// How one question fares.
struct Line {
  Duration request{};            ///< on the way to the server
  Duration reply{};              ///< and back
  bool silent = false;           ///< never arrives
  bool reply_lost = false;       ///< arrives and is done, but nobody hears of it
  std::optional<Fault> fault{};  ///< the server says this and does nothing
};

/// A client's connection to a store. Keeps the order of what it carries.
class FakeServer final : public ScriptedServer {
 public:
  struct Asked {
    Question question;
    Instant at;  ///< when it was sent
    std::string token;
  };

  FakeServer(FakeClock& clock, FakeStore& store, std::string name)
      : clock_(clock), store_(store), name_(std::move(name)) {}

  [[nodiscard]] const std::string& name() const override { return name_; }
  asio::awaitable<Result<LockList, Fault>> list(Listed listed, Instant deadline) override;
  asio::awaitable<std::optional<Fault>> subscribe(Resource resource, std::string waiter,
                                                  std::function<void(Notification)> notified,
                                                  Instant deadline) override;
  void unsubscribe() override;
  void lose_subscription() { store_.unsubscribe(*channel_); }  ///< and nobody is told
  asio::awaitable<void> close(Instant deadline) override;

  /// Everything that was sent, in order; and when a kind of question was.
  [[nodiscard]] const std::vector<Asked>& log() const noexcept { return log_; }
  [[nodiscard]] std::vector<Instant> asked(Question question) const;
  [[nodiscard]] std::vector<std::string> tokens(Question question) const;

  Line line;                              ///< for every question
  std::map<Question, Line> line_for;      ///< unless this has one
  std::function<Line()> random_line;      ///< unless this is set
  std::optional<Instant> close_deadline;  ///< what close() was told
  std::string run_id;  ///< of the process that the address leads to; empty: it does not tell

 protected:
  asio::awaitable<ScriptReply> call(ScriptCall call, Instant deadline) override;
  void post(ScriptCall call, NotUndone not_undone) override;
  void post_to_late(ScriptCall, bool, NotUndone) override {
  }  // one connection, which keeps its order
  [[nodiscard]] ServerFacts facts() const override {
    return {run_id, clock_.now() - store_.started};
  }

 private:
  template <class Answer, class Act>
  asio::awaitable<Result<Answer, Fault>> ask(Question question, std::string token, Instant deadline,
                                             Act act);
  Line route(Question question) const;
  Instant arrival(Duration delay) {
    return last_arrival_ = std::max(last_arrival_, clock_.now() + delay);
  }

  FakeClock& clock_;
  FakeStore& store_;
  std::string name_;
  std::vector<Asked> log_;
  std::set<std::string> left_;          ///< what was carried that can be taken back: see UndoTarget
  std::optional<std::string> channel_;  ///< subscribed to
  Instant last_arrival_{};
};

/// One process: its servers, in configured order, and its server_set.
struct Client {
  Client(asio::any_io_executor executor, FakeClock& world_clock,
         const std::vector<FakeStore*>& stores, std::uint64_t seed, Duration timeout,
         Duration restart_guard = Duration::zero());

  [[nodiscard]] FakeServer& server(std::size_t index) const { return *servers[index]; }
  void every_queue(const Line& fate) const;

  ClientClock own_clock;
  std::vector<FakeServer*> servers;  ///< owned by the server_set
  ServerSet server_set;
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
  void in(Duration delay, std::function<void()> action) {
    clock_.at(clock_.now() + delay, std::move(action));
  }

  /// Runs the coroutine to its end, and everything else for as long. Throws when it is stuck.
  template <class T>
  T run(asio::awaitable<T> task) {
    std::optional<T> result;
    spawn(io_->get_executor(), [&result, &task]() -> asio::awaitable<void> {
      result.emplace(co_await std::move(task));
    });
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
AcquireOrder order(Duration length = std::chrono::seconds(10),
                   Duration needed_validity = Duration::zero());

}  // namespace redlock::fake
