#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "history.hpp"
#include "nightly.hpp"
#include "referees.hpp"
#include "schedule.hpp"
#include "session.hpp"
#include "support/spawn.hpp"
#include "virtual/machine.hpp"
#include "virtual/network.hpp"
#include "virtual/nodes.hpp"
#include "virtual/server.hpp"

namespace redlock::sim {

/// Not the product's own quorum_of(): that may be the fault.
inline std::size_t majority(std::size_t servers) {
  return servers / 2 + 1;
}

/// By then a server knows that a client was killed.
constexpr Milliseconds hang_up_delay{20};

/// How many values the reason of a failed attempt may have.
constexpr std::size_t whys = static_cast<std::size_t>(AcquireDecision::dismissed) + 1;

/// Statistics of many schedules, which show whether they cover what they should.
struct Totals {
  std::size_t schedules = 0;
  std::size_t scripts = 0;
  std::size_t grants = 0;
  std::size_t failures = 0;
  std::array<std::size_t, whys> failures_by_why{};
  Duration virtual_time{};
};

/// Runs one schedule from beginning to end.
class World final : public Network {
 public:
  /// `lua` is shared by all worlds, since it keeps compiled scripts.
  World(const Profile& profile, std::uint64_t seed, bool with_history, local::LuaHost& lua);
  ~World() override;
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// Runs the schedule. -> the first violation, or nullopt
  std::optional<Violation> run();

  void add_to(Totals& totals) const;

  // For sessions.
  [[nodiscard]] Timeline& timeline() noexcept { return timeline_; }
  [[nodiscard]] History& history() noexcept { return history_; }
  [[nodiscard]] const Schedule& schedule() const noexcept { return schedule_; }
  [[nodiscard]] Referees& referees() noexcept { return referees_; }
  [[nodiscard]] Referee& referee(const Resource& resource) { return referees_.of(resource); }
  [[nodiscard]] const Resource& resource(std::size_t key) const { return resources_.at(key); }
  Process& new_process(std::size_t host, std::string name);
  /// As the product writes it into owner records.
  [[nodiscard]] std::string name_of_host(std::size_t host) const;
  std::shared_ptr<ServerSet> new_server_set(Process& process, Duration server_timeout);
  void start(std::function<asio::awaitable<void>()> coroutine) {
    spawn(timeline_.executor(), std::move(coroutine));
  }
  void in(Duration delay, std::function<void()> action) { timeline_.in(delay, std::move(action)); }
  void finished(Process& process) {
    referees_.each([&](Referee& referee) { referee.finished(process); });
  }
  void left_nothing(const Process& process) {
    referees_.each([&](Referee& referee) { referee.left_nothing(process); });
  }
  void note_failure(AcquireDecision why) { ++failures_[static_cast<std::size_t>(why)]; }
  /// The session is about to hold the lock.
  void note_grant(const Session& session);
  void note_giving_up(const Session& session);
  // Of --once-per: see Nights.
  void ended_well(Duration started) { nights_.ended_well(started); }
  void recorded(const Session& session, Duration started);
  void left_out(const Session& session);

 private:
  std::shared_ptr<Wire> dial(Process& process, std::size_t port) override;
  [[nodiscard]] Path& path(std::size_t host, std::size_t server) {
    return paths_[host * servers_.size() + server];
  }
  void add_servers(local::LuaHost& lua);
  [[nodiscard]] std::unique_ptr<Nodes> make_nodes(const NodesPlan& plan);
  [[nodiscard]] redis::Endpoint endpoint_of(std::size_t vote) const;
  /// The node of this vote that has the lock's key, or would have it.
  [[nodiscard]] Server& place_of_lock(std::size_t vote);

  void plan_sessions();
  void kill(Session& session);

  // Mishaps: world_mishaps.cpp.
  void plan_mishaps();
  void apply(const Mishap& mishap);
  asio::awaitable<void> break_by_force(Mishap mishap);
  asio::awaitable<void> inspect_lock(Mishap mishap);
  asio::awaitable<void> ask_holder(Mishap mishap);
  asio::awaitable<void> dismiss(Mishap mishap);
  void foreign_lock(const Mishap& mishap);
  void move_address(std::size_t address, std::size_t to);
  void spoil_counter(Server& server, Duration span);
  void spoil_key(Server& server, const Spoiling& spoiling);
  void queue_newer_waiter(Duration span);
  void check_newer_waiter(const std::vector<Milliseconds>& ends);
  void calm_down();

  [[nodiscard]] bool all_over() const;

  // Rules for sessions: world_checks.cpp.
  void check_order(const Session& session);
  void check_delay(const Session& session);
  /// A waiter that finds the queue full does so because of others.
  void check_full(const Session& session);
  /// Whether no session that started before it waits.
  [[nodiscard]] bool is_first(const Session& session) const;
  void check_progress(const Session& session);
  void check_outcome();
  void check_leftovers();

  Schedule schedule_;
  Random random_;
  Timeline timeline_;
  History history_;
  std::vector<Resource> resources_;
  Resource resource_;  ///< the first, and usually the only one
  Referees referees_;
  Referee& referee_;                           ///< of that resource
  std::deque<Server> servers_;                 ///< votes, then further nodes and sentinels
  std::vector<std::unique_ptr<Nodes>> nodes_;  ///< by vote; null: it is one server
  std::vector<std::size_t> leads_to_;          ///< by a server's address
  std::deque<Host> hosts_;
  std::vector<Path> paths_;
  std::deque<Process> processes_;
  std::vector<std::shared_ptr<ServerSet>> server_sets_;
  std::deque<Session> sessions_;
  std::array<std::size_t, whys> failures_{};
  std::size_t foreign_clients_ = 0;
  Nights nights_;
};

}  // namespace redlock::sim
