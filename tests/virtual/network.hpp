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
#include "store/script.hpp"

namespace redlock::sim {

class Server;

/// The route between a host and a server. Packets of an outage are retransmitted until they arrive:
/// TCP loses only time, and the connection when one end gives up.
class Path {
 public:
  Path(Duration delay, Duration jitter, unsigned stragglers, Random random)
      : delay_(delay), jitter_(jitter), stragglers_(stragglers), random_(random) {}

  /// Nothing gets through from `from` until `to`.
  void go_out(Duration from, Duration to) { outages_.emplace_back(from, to); }

  /// From now on no packet is delayed by a retransmission.
  void calm_down() { stragglers_ = 0; }

  /// The arrival time of a message that is sent now.
  Duration arrival(Duration now);

 private:
  Duration delay_;
  Duration jitter_;
  unsigned stragglers_;  ///< packets in a thousand that are retransmitted
  Random random_;
  std::vector<std::pair<Duration, Duration>> outages_;
};

/// The fate of one request, for tests that control each request.
struct Fate {
  Duration request{};       ///< how much longer it takes to reach the server
  Duration reply{};         ///< how much longer its reply takes back
  bool silent = false;      ///< neither it nor anything after it on this connection ever arrives
  bool reply_lost = false;  ///< the server executes it, but sends nothing more on this connection
  std::optional<Reply> answer{};  ///< the server only replies this, and executes nothing
};

/// One connection between a process and a server: bytes in order, each way.
class Wire : public std::enable_shared_from_this<Wire> {
 public:
  Wire(Process& process, Server& server, Path& path)
      : process_(process), server_(server), path_(path), reader_(process) {}

  [[nodiscard]] Process& process() const noexcept { return process_; }
  [[nodiscard]] bool leads_to(const Server& server) const noexcept { return &server == &server_; }

  /// Whether a request may still arrive, or be read.
  [[nodiscard]] bool has_in_flight() const;
  /// Whether no further request can arrive.
  [[nodiscard]] bool is_done() const noexcept {
    return end_arrived_ || dropped_ || (closed_ && !open_);
  }

  // The client's end, as a Transport uses it.
  asio::awaitable<std::optional<Fault>> open();
  asio::awaitable<std::size_t> read_some(asio::mutable_buffer buffer, asio::error_code& error);
  void send(std::string bytes);
  void end_sending();
  /// Requests that were sent before still arrive.
  void close();

  // The server's end.
  /// `delay`: how much longer than usual the reply takes.
  void reply(std::string bytes, Duration delay = Duration::zero());
  /// No later reply arrives.
  void lose_replies() { replies_lost_ = true; }
  /// The time at which the server reads a request that arrives now, in order; nullopt: never.
  std::optional<Duration> read_at(const Fate& fate);
  [[nodiscard]] std::optional<Duration> last_read() const;
  /// Closes the server's end after the client's, following all replies.
  void finish();
  [[nodiscard]] bool cut() const noexcept { return cut_; }
  /// Whether the client can still receive replies.
  [[nodiscard]] bool has_reader() const noexcept { return !closed_; }
  /// The server closes the connection and reads nothing more.
  void drop() { dropped_ = true; }
  /// When the client closed it, if it did.
  [[nodiscard]] const std::optional<Duration>& closed_at() const noexcept { return closed_at_; }

  /// The connection breaks. `delivers`: requests in flight arrive at the server, but their replies
  /// are lost.
  void cut(bool delivers);
  /// The connection breaks, and the client learns of it only when it sends something.
  void vanish();

  /// Returns the fate of a request by the name of its script, or of its command if it runs none.
  /// For `message`, a message that the server publishes, only the delay counts. Null: nothing goes
  /// wrong.
  std::function<Fate(std::string_view request)> fate_of;

  std::string channel;   ///< subscribed to, if any
  std::string received;  ///< an incomplete command that the server has read
  std::string unread;    ///< bytes that arrived while the server was frozen
  bool asking = false;   ///< the last command was ASKING

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
  bool ended_ = false;  ///< the client sent its end
  bool cut_ = false;
  bool dropped_ = false;       ///< requests in flight were lost with the connection
  bool vanished_ = false;      ///< cut, and the client sent nothing since
  bool cut_is_known_ = false;  ///< the client has noticed the cut
  bool end_arrived_ = false;
  bool server_ended_ = false;
};

}  // namespace redlock::sim
