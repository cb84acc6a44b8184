#pragma once

#include <asio/awaitable.hpp>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "asked_server.hpp"
#include "engine/attempt.hpp"
#include "engine/server_set.hpp"
#include "engine/wait_state.hpp"
#include "store/local/commands.hpp"
#include "support/clock.hpp"
#include "support/spawn.hpp"
#include "virtual/machine.hpp"
#include "virtual/network.hpp"
#include "virtual/server.hpp"
#include "virtual/timeline.hpp"

/// The virtual world (tests/virtual) as the engine's unit tests want it: nothing takes time,
/// nothing fails and every clock is right, but for what a test says. The product's connections run
/// in it. The same test always takes the same course.
namespace redlock::unit {

using sim::Fate;

// Requests that come to nothing, and what the server answers.
inline const Fate refused{.answer = error_reply("LOADING Redis is loading the dataset in memory")};
inline const Fate out_of_memory{
    .answer = error_reply("OOM command not allowed when used memory > 'maxmemory'.")};
inline const Fate denied{
    .answer = error_reply("NOPERM this user has no permissions to run this command")};
inline const Fate misconfigured{.answer = error_reply("ERR unknown command 'EVALSHA'")};
inline const Fate malformed{.answer = text_reply("what?")};

/// What a server keeps.
class Store {
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

  Store(sim::Server& server, const sim::Process& observer) : server_(server), observer_(observer) {}

  /// Nothing when the key is free.
  std::optional<Lock> lock(const Resource& resource);
  [[nodiscard]] bool is_free(const Resource& resource) { return !lock(resource); }
  std::uint64_t counter(const Resource& resource);
  void set_counter(const Resource& resource, std::uint64_t value);

  /// The waiters, the first in the queue first, as their owner records' "command" names them.
  std::vector<std::string> waiting(const Resource& resource);

  /// A lock that another library took; without `remaining` it never ends.
  void hold_foreign(const Resource& resource, const std::string& value,
                    std::optional<Duration> remaining);
  void drop(const Resource& resource) { execute({"DEL", resource.key()}); }
  void forget_owner(const Resource& resource);  ///< the lock's record, not the lock
  void change_owner(const Resource& resource, const Owner& owner);
  void lose_everything() { server_.keyspace().load({}); }

  /// Of whatever name.
  [[nodiscard]] std::size_t keys() { return server_.keyspace().live().size(); }

 private:
  Reply execute(const std::vector<std::string>& command);
  [[nodiscard]] Instant instant_of(Milliseconds wall) const;

  sim::Server& server_;
  const sim::Process& observer_;
};

LeaseId id_of(const std::string& value);

inline constexpr Milliseconds server_timeout{500};

struct ClientOptions {
  std::uint64_t seed = 1;  ///< the same seed makes the same tokens
  Duration timeout = server_timeout;
  Duration restart_guard{};
  bool identifies_itself = false;  ///< asks each server who it is
  /// To which its addresses lead, in configured order; empty: all.
  std::vector<std::size_t> servers{};
};

/// One process, on a host of its own.
struct Client {
  Client(sim::Timeline& timeline, sim::Network& network, std::size_t number,
         const ClientOptions& options);

  /// A server as the client has it.
  [[nodiscard]] AskedServer& server(std::size_t index) const { return *servers[index]; }
  void every_server(const Fate& fate) const;

  /// As with SIGSTOP: it does nothing, and stays connected.
  void stop() { host.pause(); }
  void go_on() { host.go_on(); }
  void stop_for(Duration span);

  /// As with SIGKILL: it does nothing any more, and its connections end.
  void die() { process.end(); }

  void set_wall_offset(Milliseconds offset);

  sim::Host host;
  sim::Process process;
  std::vector<std::size_t> leads_to;  ///< by address
  std::vector<AskedServer*> servers;  ///< owned by the server_set
  ServerSet server_set;
  Interrupt interrupt;

 private:
  Milliseconds wall_offset_{};
};

class World final : public sim::Network {
 public:
  /// `ppm`: how much faster than others the servers' clocks run.
  explicit World(std::size_t servers = 3, const std::vector<std::int64_t>& ppm = {});
  ~World() override;
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// A clock that is right.
  [[nodiscard]] const Clock& clock() const noexcept { return observer_; }
  [[nodiscard]] Instant now() const { return observer_.now(); }
  [[nodiscard]] Duration since_start() const { return timeline_.now(); }
  [[nodiscard]] std::size_t size() const noexcept { return servers_.size(); }
  [[nodiscard]] sim::Server& server(std::size_t index) { return servers_[index]; }
  [[nodiscard]] Store& store(std::size_t index) { return stores_[index]; }
  /// Of the servers' Lua.
  static void collect_garbage();

  Client& client(const ClientOptions& options);
  Client& client(std::uint64_t seed = 1, Duration timeout = server_timeout) {
    return client(ClientOptions{.seed = seed, .timeout = timeout});
  }
  Client& client_of(const std::vector<std::size_t>& servers) {
    return client(ClientOptions{.servers = servers});
  }
  Client& guarded_client(Duration restart_guard);

  /// Does something that long from now.
  void in(Duration delay, std::function<void()> action) { timeline_.in(delay, std::move(action)); }

  /// Runs the coroutine to its end, and everything else for as long. Throws when it is stuck.
  template <class T>
  T run(asio::awaitable<T> task) {
    std::optional<T> result;
    start(
        [&result, &task]() -> asio::awaitable<void> { result.emplace(co_await std::move(task)); });
    drive([&] { return result.has_value(); });
    return std::move(*result);
  }

  /// Starts a coroutine that runs beside others.
  void start(std::function<asio::awaitable<void>()> coroutine) {
    spawn(timeline_.executor(), std::move(coroutine));
  }

  /// Runs until nothing is left to happen.
  void settle();
  void settle_for(Duration span);

  /// In how many stores something lies under the key.
  std::size_t stores_in_use(const Resource& resource);

 private:
  std::shared_ptr<sim::Wire> dial(sim::Process& process, std::size_t address) override;
  bool step();
  void drive(const std::function<bool()>& finished);

  sim::Timeline timeline_;
  sim::Path path_;
  sim::Host observers_host_;
  sim::Process observer_;
  std::deque<sim::Server> servers_;
  std::deque<Store> stores_;
  std::deque<Client> clients_;
  std::map<const sim::Process*, Client*> clients_by_process_;
  std::size_t events_ = 0;
};

/// One attempt, and waiting without end.
inline constexpr WaitPolicy once{.wait = Duration::zero(),
                                 .unavailable_wait = std::chrono::seconds(10),
                                 .retry_delay = Milliseconds(100)};
inline constexpr WaitPolicy for_ever{.wait = std::nullopt,
                                     .unavailable_wait = std::chrono::seconds(10),
                                     .retry_delay = Milliseconds(100)};

Resource resource(std::string_view key = "deploy");
Ttl ttl(Duration span);
/// The terms of a release after which the lease lasts for so long.
ReleaseTerms expiring_in(Duration expire_in);
AcquireOrder order(Duration length = std::chrono::seconds(10),
                   Duration needed_validity = Duration::zero());

}  // namespace redlock::unit
