#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "machine.hpp"
#include "network.hpp"
#include "store/local/keyspace.hpp"
#include "store/local/lua_host.hpp"
#include "store/redis/reply_reader.hpp"

namespace redlock::sim {

class Server;

/// Why a server refuses what it otherwise does.
enum class Refusal {
  none,
  loading,    ///< everything but INFO
  busy,       ///< everything
  no_rights,  ///< scripts
  read_only,  ///< a script's writes
  misconf,    ///< the same
  oom,        ///< those that need memory, in a script that has not written yet
};

/// A script that runs at a server, for whoever watches.
struct Run {
  Server& server;
  Process& process;  ///< that sent it
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
  /// There will be no more from the process on this connection. `read_all`: all that it sent was
  /// read, otherwise the rest was dropped.
  virtual void saw_end(Server& server, Process& process, bool read_all) = 0;
  /// The connection broke, or the server refuses everything: what was sent may come to nothing, or
  /// late and alone.
  virtual void broke(Server& server, Process& process) = 0;
  /// It sent a script elsewhere, or put it off: what the process undoes comes to nothing there.
  virtual void redirected(Server& server, Process& process, const Reply& error) = 0;
  /// Keys went from one node of a vote to another.
  virtual void moved(Server& from, Server& to) = 0;
};

/// What a server knows of others with which it is one vote: see nodes.hpp.
class Peers {
 public:
  virtual ~Peers() = default;
  /// The error with which it sends the command elsewhere, or puts it off, before anything else.
  virtual std::optional<Reply> redirect(Server& at, Wire& wire, const redis::Command& command) = 0;
  /// The reply to a command that is about them; nothing for any other.
  virtual std::optional<Reply> answer(Server& at, Wire& wire, const redis::Command& command) = 0;
  /// It published this; its own subscribers have it.
  virtual void published(Server& at, std::string_view channel, std::string_view message) = 0;
};

/// A Redis: keyspace, scripts and their cache, connections, a clock of its own, and a life of
/// crashes.
class Server {
 public:
  Server(Timeline& timeline, local::LuaHost& lua, std::size_t number, Oscillator clock,
         Milliseconds wall_offset, Random random);

  [[nodiscard]] std::size_t number() const noexcept { return number_; }
  /// The number of the vote whose node it is: its own, unless it joined another's.
  [[nodiscard]] std::size_t vote() const noexcept { return vote_; }
  /// Becomes a node of that vote. `peers` must outlive it.
  void join(Peers& peers, std::size_t vote);
  /// What a replica has is a copy, and it refuses a script's writes.
  void set_replica(bool is_replica) { is_replica_ = is_replica; }
  [[nodiscard]] bool is_replica() const noexcept { return is_replica_; }
  [[nodiscard]] const Oscillator& clock() const noexcept { return clock_; }
  /// As its clock has it now.
  local::Keyspace& keyspace();
  [[nodiscard]] Milliseconds wall() const;
  void step_wall(Milliseconds by) { wall_offset_ += by; }
  /// The true time when its wall clock, as it is set now, begins to show that.
  [[nodiscard]] Duration true_time(Milliseconds wall) const;

  // For the network.
  [[nodiscard]] bool listens() const noexcept { return up_; }
  void accept(const std::shared_ptr<Wire>& wire);
  void receive(const std::shared_ptr<Wire>& wire, std::string_view bytes);
  void see_end(const std::shared_ptr<Wire>& wire);

  // Its fate.
  void crash(bool loses_everything);
  void restart();
  /// Stopped, or busy with something else: the kernel takes connections and bytes, nobody reads
  /// them.
  void freeze() { frozen_ = true; }
  void thaw();
  [[nodiscard]] bool answers() const noexcept { return up_ && !frozen_; }
  [[nodiscard]] bool frozen() const noexcept { return frozen_; }
  void flush_scripts() { knows_scripts_ = false; }
  /// As if it had run one before.
  void load_scripts() { knows_scripts_ = true; }
  void cut_one(bool delivers);
  /// Breaks every connection.
  void cut_all();
  /// Breaks the connections on which the host's processes listen.
  void cut_subscriptions(const Host& host);
  /// Drops the host's subscriptions; nobody is told.
  void forget_subscriptions(const Host& host);
  /// Sends this to the channel's subscribers. -> how many there are
  std::int64_t deliver(std::string_view channel, std::string_view message);
  /// Sends this to all who subscribed to anything.
  void publish_to_all(std::string_view message);
  /// Loses power and comes back at once with its data; nobody is told.
  void lose_power();
  void refuse(Refusal refusal) { refusal_ = refusal; }

  Watcher* watcher = nullptr;

 private:
  /// True when it had something to answer.
  bool serve(Wire& wire, std::string_view bytes);
  /// Reads what came while it was frozen, piece by piece. When it finds that nobody hears its
  /// answer any more, it drops the rest.
  void wake_to(const std::shared_ptr<Wire>& wire);
  std::string answer(Wire& wire, const redis::Command& command);
  /// Answers as the wire's fate_of says.
  void answer_by_fate(Wire& wire, const redis::Command& command);
  Reply run(Wire& wire, const redis::Command& command);
  Reply scan();
  Reply run_script(Wire& wire, const redis::Command& command, std::string_view text,
                   std::string_view name);
  std::int64_t publish(std::string_view channel, std::string_view message);
  static void publish_on(Wire& wire, std::string_view message);
  void forget(const std::shared_ptr<Wire>& wire);
  [[nodiscard]] std::optional<Reply> refused(const redis::Command& command) const;

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
  bool knows_scripts_ = false;  ///< it saw their text since it started
  std::string run_id_;
  std::chrono::seconds started_{};  ///< by its wall clock
  bool up_ = true;
  bool frozen_ = false;
  Refusal refusal_ = Refusal::none;
  std::vector<std::shared_ptr<Wire>> wires_;
  std::deque<std::function<void()>> backlog_;  ///< what came while it was frozen
};

}  // namespace redlock::sim
