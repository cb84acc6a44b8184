#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/clock.hpp"
#include "timeline.hpp"

namespace redlock::sim {

/// The time that a correct wall clock shows at the beginning of a schedule.
inline constexpr Milliseconds epoch{1'700'000'000'000};

/// A clock that counts from any number and runs a little fast or slow.
class Oscillator {
 public:
  Oscillator(Duration origin, std::int64_t ppm) : origin_(origin), ppm_(ppm) {}

  /// The time that the clock shows at that true time.
  [[nodiscard]] Duration at(Duration true_time) const {
    return origin_ + true_time + Duration(true_time.count() / 1000 * ppm_ / 1000);
  }

  /// The first true time at which the clock shows `shown`; never before the beginning.
  [[nodiscard]] Duration when(Duration shown) const;

  [[nodiscard]] std::int64_t ppm() const noexcept { return ppm_; }

 private:
  Duration origin_;
  std::int64_t ppm_;
};

class Wire;
class Process;

/// The source of a process's connections.
class Network {
 public:
  virtual ~Network() = default;
  virtual std::shared_ptr<Wire> dial(Process& process, std::size_t server) = 0;
};

/// A machine with clients: its clocks, and whether it runs or is paused.
class Host {
 public:
  Host(Timeline& timeline, Network& network, std::size_t number, Oscillator clock,
       Milliseconds wall_offset)
      : timeline_(timeline),
        network_(network),
        number_(number),
        clock_(clock),
        wall_offset_(wall_offset) {}

  [[nodiscard]] Timeline& timeline() noexcept { return timeline_; }
  [[nodiscard]] std::size_t number() const noexcept { return number_; }
  [[nodiscard]] const Oscillator& clock() const noexcept { return clock_; }
  [[nodiscard]] Milliseconds wall() const;
  void step_wall(Milliseconds by) { wall_offset_ += by; }

  /// Pauses the host until go_on(). Coroutines that become due meanwhile run then. CLOCK_BOOTTIME
  /// does not stop.
  void pause() { paused_ = true; }
  void go_on();
  [[nodiscard]] bool paused() const noexcept { return paused_; }

  // The rights of its user on the servers.
  bool may_publish = true;
  bool may_subscribe = true;

 private:
  friend class Process;
  Timeline& timeline_;
  Network& network_;
  std::size_t number_;
  Oscillator clock_;
  Milliseconds wall_offset_;
  bool paused_ = false;
  std::vector<std::pair<Process*, std::unique_ptr<Parked>>> held_up_;
};

/// One process of a host, and the clock that it sees.
class Process final : public Clock {
 public:
  Process(Host& host, std::string name) : host_(host), name_(std::move(name)) {}

  [[nodiscard]] Instant now() const override {
    return Instant(host_.clock().at(host_.timeline().now()));
  }
  [[nodiscard]] Milliseconds wall() const override { return host_.wall(); }
  [[nodiscard]] std::unique_ptr<Event> make_event() const override;

  /// The true time at which its clock shows `shown`.
  [[nodiscard]] Duration true_time(Instant shown) const {
    return host_.clock().when(shown.time_since_epoch());
  }

  [[nodiscard]] Host& host() const noexcept { return host_; }
  [[nodiscard]] Timeline& timeline() const noexcept { return host_.timeline(); }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

  std::shared_ptr<Wire> dial(std::size_t server);

  /// The process exits or is killed: none of its coroutines is ever resumed, and the kernel closes
  /// its connections.
  void end();
  [[nodiscard]] bool ended() const noexcept { return ended_; }

  /// Whether the server has read everything that was sent to it, and the end of each connection.
  [[nodiscard]] bool is_done_at(const class Server& server) const;

  /// Whether none of its requests to the server is still in flight.
  [[nodiscard]] bool has_delivered_all_to(const class Server& server) const;

  void make_ready(std::unique_ptr<Parked> parked);

 private:
  Host& host_;
  std::string name_;
  bool ended_ = false;
  std::vector<std::shared_ptr<Wire>> wires_;
};

}  // namespace redlock::sim
