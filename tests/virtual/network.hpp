#pragma once

#include <asio/buffer.hpp>
#include <asio/error_code.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/vote.hpp"
#include "machine.hpp"
#include "random.hpp"
#include "store/reply.hpp"

namespace redlock::sim {

class Server;

/// The way between a host and a server. What is sent while it is out is sent again until it
/// arrives: TCP loses nothing but time, and, when somebody gives up, the connection.
class Path {
 public:
  Path(Duration delay, Duration jitter, unsigned stragglers, Random random)
      : delay_(delay), jitter_(jitter), stragglers_(stragglers), random_(random) {}

  /// Nothing gets through between these two.
  void go_out(Duration from, Duration to) { outages_.emplace_back(from, to); }
  [[nodiscard]] bool is_out(Duration now) const;

  /// No packet is late any more.
  void calm_down() { stragglers_ = 0; }

  /// When something arrives that is sent now.
  Duration arrival(Duration now);

 private:
  Duration delay_;
  Duration jitter_;
  unsigned stragglers_;  ///< packets in a thousand that are sent again
  Random random_;
  std::vector<std::pair<Duration, Duration>> outages_;
};

/// How one request fares, for tests that say so request by request.
struct Fate {
  Duration request{};   ///< how much longer it takes to the server
  Duration reply{};     ///< and its reply back
  bool silent = false;  ///< it never arrives, nor does anything sent behind it on this connection
  bool reply_lost = false;  ///< the server acts on it, but sends nothing more on this connection
  std::optional<Reply> answer{};  ///< the server does nothing and answers this
};

/// One connection between a process and a server: bytes in order, each way.
class Wire : public std::enable_shared_from_this<Wire> {
 public:
  Wire(Process& process, Server& server, Path& path)
      : process_(process), server_(server), path_(path), reader_(process) {}

  [[nodiscard]] Process& process() const noexcept { return process_; }
  [[nodiscard]] bool leads_to(const Server& server) const noexcept { return &server == &server_; }

  /// Something that was sent may still arrive, or be read.
  [[nodiscard]] bool has_in_flight() const;
  /// Nothing that was sent can still arrive.
  [[nodiscard]] bool is_done() const noexcept {
    return end_arrived_ || dropped_ || (closed_ && !open_);
  }

  // The client's end: what a Transport does.
  asio::awaitable<std::optional<Fault>> open();
  asio::awaitable<std::size_t> read_some(asio::mutable_buffer buffer, asio::error_code& error);
  void send(std::string bytes);
  void end_sending();
  /// What was sent arrives all the same.
  void close();

  // The server's end.
  /// `delay`: how much longer than usual it is under way.
  void reply(std::string bytes, Duration delay = Duration::zero());
  /// No later reply arrives.
  void lose_replies() { replies_lost_ = true; }
  /// When the server reads a request that it gets now, in order; nothing: never.
  std::optional<Duration> read_at(const Fate& fate);
  [[nodiscard]] std::optional<Duration> last_read() const;
  /// Answers the client's end with its own, behind all replies.
  void finish();
  [[nodiscard]] bool cut() const noexcept { return cut_; }
  /// Whether the client still hears what is answered.
  [[nodiscard]] bool has_reader() const noexcept { return !closed_; }
  /// The server ends it, and reads nothing more.
  void drop() { dropped_ = true; }
  /// When the client closed it, if it did.
  [[nodiscard]] const std::optional<Duration>& closed_at() const noexcept { return closed_at_; }

  /// The connection breaks. `delivers`: what is on its way to the server arrives there, but nobody
  /// hears what came of it.
  void cut(bool delivers);
  /// The same, and the client learns of it only when it sends something.
  void vanish();

  /// How a request fares: by the name of the script, or of the command that runs none; `message`
  /// is one that the server publishes, which can only be delayed. Null: all fare well.
  std::function<Fate(std::string_view request)> fate_of;

  std::string channel;   ///< subscribed to, if any
  std::string received;  ///< what the server did not understand yet: an incomplete command
  std::string unread;    ///< what came while the server was frozen
  bool asking = false;   ///< the next command comes behind ASKING

 private:
  void arrive(std::string bytes);
  void tell_of_cut(Duration when);

  Process& process_;
  Server& server_;
  Path& path_;
  Parking reader_;
  std::string inbox_;
  Duration last_up_{};
  Duration last_down_{};
  Duration last_read_{};  ///< of the requests that had a fate
  bool silent_ = false;   ///< one of them never arrived
  bool replies_lost_ = false;
  bool open_ = false;
  bool refused_ = false;
  bool closed_ = false;  ///< by the client
  std::optional<Duration> closed_at_;
  bool ended_ = false;  ///< the client's end is on its way
  bool cut_ = false;
  bool dropped_ = false;       ///< what is on its way was lost with the connection
  bool vanished_ = false;      ///< cut, and nothing was sent since
  bool cut_is_known_ = false;  ///< to the client
  bool end_arrived_ = false;
  bool server_ended_ = false;
};

}  // namespace redlock::sim
