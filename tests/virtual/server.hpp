#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "machine.hpp"
#include "network.hpp"
#include "store/local/commands.hpp"
#include "store/local/keyspace.hpp"
#include "store/local/lua_host.hpp"

namespace redlock::sim {

class Server;

/// Why a server refuses commands that it normally executes, and which ones.
enum class Refusal {
  none,
  loading,    ///< everything but INFO
  busy,       ///< everything
  no_rights,  ///< scripts
  read_only,  ///< a script's writes
  misconf,    ///< the same
  oom,        ///< those that need memory, in a script that has not written yet
};

/// A script that runs on a server, for watchers.
struct Run {
  Server& server;
  Process& process;  ///< the sender
  std::string_view script;
  local::Arguments keys;
  local::Arguments arguments;
  std::optional<Duration> closed_at;  ///< when the process gave up the connection it came on
};

class Watcher {
 public:
  virtual ~Watcher() = default;
  virtual void before(const Run& run) = 0;
  virtual void after(const Run& run, const Reply& reply) = 0;
  /// No more requests of the process come on this connection. `read_all`: all of its requests were
  /// read; otherwise the rest was dropped.
  virtual void saw_end(Server& server, Process& process, bool read_all) = 0;
  /// The connection broke, or the server refuses everything: requests may have no effect, or take
  /// effect late and without those that follow.
  virtual void broke(Server& server, Process& process) = 0;
  /// The server redirected or deferred a script: an undo of the process has no effect there.
  virtual void redirected(Server& server, Process& process, const Reply& error) = 0;
  /// Keys moved from one node of a vote to another.
  virtual void moved(Server& from, Server& to) = 0;
};

/// A server's view of the other nodes of its vote: see nodes.hpp.
class Peers {
 public:
  virtual ~Peers() = default;
  /// The error that redirects or defers the command, before anything else; nullopt otherwise.
  virtual std::optional<Reply> redirect(Server& at, Wire& wire, local::Arguments command) = 0;
  /// The reply to a command about the nodes; nullopt for any other command.
  virtual std::optional<Reply> answer(Server& at, Wire& wire, local::Arguments command) = 0;
  /// `at` published the message, and its own subscribers have received it.
  virtual void published(Server& at, std::string_view channel, std::string_view message) = 0;
};

/// A Redis server: keyspace, scripts and their cache, connections, a clock of its own, and crashes.
class Server {
 public:
  Server(Timeline& timeline, local::LuaHost& lua, std::size_t number, Oscillator clock,
         Milliseconds wall_offset, Random random);

  [[nodiscard]] std::size_t number() const noexcept { return number_; }
  /// The number of the vote whose node it is: its own number, unless it joined another vote.
  [[nodiscard]] std::size_t vote() const noexcept { return vote_; }
  /// Becomes a node of that vote. `peers` must outlive this object.
  void join(Peers& peers, std::size_t vote);
  /// A replica has only a copy of the data, and refuses a script's writes.
  void set_replica(bool is_replica) { is_replica_ = is_replica; }
  [[nodiscard]] bool is_replica() const noexcept { return is_replica_; }
  [[nodiscard]] const Oscillator& clock() const noexcept { return clock_; }
  /// The keyspace at its current wall clock time.
  local::Keyspace& keyspace();
  [[nodiscard]] Milliseconds wall() const;
  void step_wall(Milliseconds by) { wall_offset_ += by; }
  /// The true time when its wall clock, as it is set now, begins to show `wall`.
  [[nodiscard]] Duration true_time(Milliseconds wall) const;

  // For the network.
  [[nodiscard]] bool listens() const noexcept { return up_; }
  void accept(const std::shared_ptr<Wire>& wire);
  void receive(const std::shared_ptr<Wire>& wire, std::string_view bytes);
  void see_end(const std::shared_ptr<Wire>& wire);

  // Failures and recoveries.
  void crash(bool loses_everything);
  void restart();
  /// The server process is stopped or busy: the kernel accepts connections and bytes, but nothing
  /// reads them.
  void freeze() { frozen_ = true; }
  void thaw();
  [[nodiscard]] bool answers() const noexcept { return up_ && !frozen_; }
  [[nodiscard]] bool frozen() const noexcept { return frozen_; }
  void flush_scripts() { knows_scripts_ = false; }
  /// As if the server had run a script before.
  void load_scripts() { knows_scripts_ = true; }
  void cut_one(bool delivers);
  /// Breaks every connection.
  void cut_all();
  /// Breaks the connections that carry subscriptions of the host's processes.
  void cut_subscriptions(const Host& host);
  /// Drops the host's subscriptions without telling the clients.
  void forget_subscriptions(const Host& host);
  /// Sends the message to the channel's subscribers. -> how many there are
  std::int64_t deliver(std::string_view channel, std::string_view message);
  /// Sends the message to the subscribers of all channels.
  void publish_to_all(std::string_view message);
  /// Loses power and returns at once with its data; clients are not notified.
  void lose_power();
  void refuse(Refusal refusal) { refusal_ = refusal; }
  /// Whether a client subscribes to all channels by a pattern.
  void monitor(bool monitored) { monitored_ = monitored; }
  /// Refuses this command in scripts, as for a user without the right; empty: none.
  void deny(std::string_view command) { denied_ = command; }

  Watcher* watcher = nullptr;

 private:
  /// -> whether there was a reply to send
  bool serve(Wire& wire, std::string_view bytes);
  /// Reads the bytes that arrived while it was frozen, piece by piece. Drops the rest once it has
  /// replied and the client has closed the connection.
  void wake_to(const std::shared_ptr<Wire>& wire);
  std::string answer(Wire& wire, local::Arguments command);
  /// Answers as the wire's fate_of decides.
  void answer_by_fate(Wire& wire, local::Arguments command);
  Reply run(Wire& wire, local::Arguments command);
  Reply scan();
  Reply run_script(Wire& wire, local::Arguments command, std::string_view text,
                   std::string_view name);
  std::int64_t publish(std::string_view channel, std::string_view message);
  [[nodiscard]] std::int64_t subscribers(std::string_view channel) const;
  static void publish_on(Wire& wire, std::string_view message);
  void forget(const std::shared_ptr<Wire>& wire);
  [[nodiscard]] std::optional<Reply> refused(local::Arguments command) const;

  Timeline& timeline_;
  local::LuaHost& lua_;
  std::size_t number_;
  std::size_t vote_;
  Peers* peers_ = nullptr;
  bool is_replica_ = false;
  Oscillator clock_;
  Milliseconds wall_offset_;
  Random random_;
  local::Keyspace keyspace_;
  bool knows_scripts_ = false;  ///< it has loaded them since it started
  std::string run_id_;
  std::chrono::seconds started_{};  ///< by its wall clock
  bool up_ = true;
  bool frozen_ = false;
  Refusal refusal_ = Refusal::none;
  bool monitored_ = false;
  std::string denied_;
  std::vector<std::shared_ptr<Wire>> wires_;
  std::deque<std::function<void()>> backlog_;  ///< requests that arrived while it was frozen
};

}  // namespace redlock::sim
