#include "timeline.hpp"

#include <algorithm>
#include <asio/use_awaitable.hpp>
#include <utility>

#include "machine.hpp"

namespace redlock::sim {
namespace {

template <class Handler>
class ParkedHandler final : public Parked {
 public:
  explicit ParkedHandler(Handler handler) : handler_(std::move(handler)) {}
  void resume() override { std::move(handler_)(); }

 private:
  Handler handler_;
};

}  // namespace

Timeline::Id Timeline::at(Duration when, std::function<void()> action) {
  const Id id{std::max(when, now_), number_++};
  events_.emplace(id, std::move(action));
  return id;
}

void Timeline::run_ready() {
  for (;;) {
    if (io_.poll() > 0) continue;
    if (ready_.empty()) return;
    const std::unique_ptr<Parked> parked = std::move(ready_.front());
    ready_.pop_front();
    parked->resume();
  }
}

bool Timeline::step() {
  run_ready();
  if (events_.empty()) return false;
  const auto event = events_.extract(events_.begin());
  now_ = event.key().when;
  event.mapped()();
  run_ready();
  return true;
}

void Timeline::clear() {
  // Destroying a coroutine may release others, and Asio unwinds it on the executor.
  while (!parkings_.empty() || !ready_.empty() || !buried_.empty()) {
    if (!ready_.empty()) {
      const auto last = std::move(ready_.back());
      ready_.pop_back();
    } else if (!buried_.empty()) {
      const auto last = std::move(buried_.back());
      buried_.pop_back();
    } else {
      parkings_.back()->leave();
    }
    io_.poll();
  }
  io_.poll();
  events_.clear();
}

Parking::~Parking() {
  if (parked_) leave();
}

asio::awaitable<void> Parking::park() {
  return asio::async_initiate<const asio::use_awaitable_t<>, void()>(
      [this](auto handler) {
        auto& parkings = process_.timeline().parkings_;
        member_ = parkings.size();
        parkings.push_back(this);
        parked_ = std::make_unique<ParkedHandler<decltype(handler)>>(std::move(handler));
      },
      asio::use_awaitable);
}

void Parking::unpark() {
  if (parked_) process_.make_ready(leave());
}

std::unique_ptr<Parked> Parking::leave() {
  auto& parkings = process_.timeline().parkings_;
  parkings.back()->member_ = member_;
  parkings[member_] = parkings.back();
  parkings.pop_back();
  return std::move(parked_);
}

}  // namespace redlock::sim
