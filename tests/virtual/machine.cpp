#include "machine.hpp"

#include <algorithm>
#include <utility>

#include "network.hpp"

namespace redlock::sim {
namespace {

class SimEvent final : public Event {
 public:
  explicit SimEvent(Process& process) : process_(process), parking_(process) {}
  ~SimEvent() override { disarm(); }
  SimEvent(const SimEvent&) = delete;
  SimEvent& operator=(const SimEvent&) = delete;

  void notify() override {
    notified_ = true;
    parking_.unpark();
  }

  asio::awaitable<bool> wait_until(Instant when) override {
    while (!notified_ && process_.now() < when) {
      if (when != Instant::max())
        timer_ = process_.timeline().at(process_.true_time(when), [this] { parking_.unpark(); });
      co_await parking_.park();
      disarm();
    }
    co_return std::exchange(notified_, false);
  }

 private:
  void disarm() {
    if (timer_) process_.timeline().cancel(*std::exchange(timer_, std::nullopt));
  }

  Process& process_;
  Parking parking_;
  std::optional<Timeline::Id> timer_;
  bool notified_ = false;
};

}  // namespace

Duration Oscillator::when(Duration shown) const {
  const auto elapsed = static_cast<double>((shown - origin_).count());
  auto guess = std::max(
      Duration::zero(),
      Duration(static_cast<std::int64_t>(elapsed / (1 + static_cast<double>(ppm_) * 1e-6))));
  while (at(guess) < shown) guess += std::max(Duration(1), shown - at(guess));
  return guess;
}

Milliseconds Host::wall() const {
  return epoch + wall_offset_ +
         std::chrono::duration_cast<Milliseconds>(clock_.at(timeline_.now()) -
                                                  clock_.at(Duration::zero()));
}

void Host::go_on() {
  paused_ = false;
  for (auto& [process, parked] : std::exchange(held_up_, {}))
    process->make_ready(std::move(parked));
}

std::unique_ptr<Event> Process::make_event() const {
  // The engine gets constant clocks. The processes of the world behind them are not constant.
  return std::make_unique<SimEvent>(const_cast<Process&>(*this));
}

std::shared_ptr<Wire> Process::dial(std::size_t server) {
  return wires_.emplace_back(host_.network_.dial(*this, server));
}

void Process::end() {
  ended_ = true;
  for (const auto& wire : wires_) wire->close();
}

bool Process::is_done_at(const Server& server) const {
  return std::all_of(wires_.begin(), wires_.end(),
                     [&](const auto& wire) { return !wire->leads_to(server) || wire->is_done(); });
}

bool Process::has_delivered_all_to(const Server& server) const {
  return std::ranges::none_of(
      wires_, [&](const auto& wire) { return wire->leads_to(server) && wire->has_in_flight(); });
}

void Process::make_ready(std::unique_ptr<Parked> parked) {
  if (ended_) {
    timeline().bury(std::move(parked));
  } else if (host_.paused_) {
    host_.held_up_.emplace_back(this, std::move(parked));
  } else {
    timeline().make_ready(std::move(parked));
  }
}

}  // namespace redlock::sim
