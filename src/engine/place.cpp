#include "engine/place.hpp"

#include <algorithm>
#include <utility>

#include "core/backoff.hpp"
#include "core/decision.hpp"
#include "support/fingerprint.hpp"
#include "support/spawn.hpp"

namespace redlock {
namespace {

/// How long somebody who was called may take to come (CALL_PATIENCE in line.lua), and a moment for the clocks.
constexpr Milliseconds standing_by{1010};

/// The same for others, should the one right behind not be there either.
constexpr Milliseconds standing_by_longer{1250};

/// Of the host's fingerprint in a waiter's id: enough to tell hosts apart that wait for the same lock.
constexpr std::size_t host_digits = 8;

/// A subscription that lived for so long was none that is cut off at once.
constexpr std::chrono::seconds sound_hearing{5};

/// Between two tries to listen at a server; a right that is missing is hardly ever granted while somebody waits.
constexpr Milliseconds shortest_deafness{100};
constexpr Milliseconds longest_deafness{10'000};
constexpr std::chrono::minutes denied_deafness{1};

}  // namespace

struct Place::Ears {
  struct Ear {
    bool hears = false;
    bool answered = false;  ///< to the first try, either way
    bool called = false;
    bool stood_down = false;  ///< the lock is taken there, since we looked
    std::optional<Fault> fault;
    std::unique_ptr<Bell> deaf;  ///< rung when it is to listen anew, and at the end
  };

  Electorate& electorate;
  Resource resource;
  std::string id;
  std::vector<Ear> ears;
  std::unique_ptr<Bell> bell;  ///< for the waiter
  std::optional<Instant> first_call;
  std::optional<Instant> stand_by_until;
  bool over = false;

  void hear(std::size_t server, Call call) {
    Ear& ear = ears[server];
    switch (call) {
      case Call::enter:
      case Call::look:
        ear.called = true;
        if (!first_call) first_call = electorate.clock().now();
        break;
      case Call::second:
        stand_by(ear, standing_by);
        break;
      case Call::third:
        stand_by(ear, standing_by_longer);
        break;
      case Call::stand_down:
        ear.stood_down = true;
        if (number_where(&Ear::stood_down) >= quorum_of(ears.size())) stand_by_until.reset();
        break;
      case Call::deaf:
        ear.hears = false;
        ear.deaf->ring();
        break;
    }
    bell->ring();
  }

  void stand_by(Ear& ear, Duration delay) {
    ear.stood_down = false;
    if (!stand_by_until) stand_by_until = electorate.clock().now() + delay;
  }

  [[nodiscard]] std::size_t number_where(bool Ear::*flag) const {
    return static_cast<std::size_t>(std::ranges::count_if(ears, [flag](const Ear& ear) { return ear.*flag; }));
  }
};

Place::Place(Electorate& electorate, Resource resource, Ticket ticket, std::string_view host)
    : electorate_(electorate), resource_(std::move(resource)), ticket_(ticket) {
  std::string id = fingerprint(host).substr(0, host_digits) + "." + std::to_string(electorate.random());
  ears_ = std::make_shared<Ears>(Ears{electorate, resource_, std::move(id), {}, nullptr, {}, {}});
  ears_->bell = electorate.clock().make_bell();
  ears_->ears.resize(electorate.size());
  for (Ears::Ear& ear : ears_->ears) ear.deaf = electorate.clock().make_bell();
}

Place::~Place() {
  if (in_line_) leave();
  stop_listening();
}

asio::awaitable<void> Place::listen(Interrupt& interrupt) {
  if (std::exchange(listens_, true)) co_return;
  const Interrupt::Listener listener(interrupt, *ears_->bell);
  const Clock& clock = electorate_.clock();
  const Instant t0 = clock.now();
  for (std::size_t i = 0; i < electorate_.size(); ++i) {
    spawn(electorate_.executor(), [ears = ears_, i] { return keep_listening(ears, i); });
  }
  Instant end = t0 + electorate_.server_timeout();
  while (ears_->number_where(&Ears::Ear::answered) < electorate_.size() && clock.now() < end && !interrupt.raised()) {
    // The slower ones may take as long again.
    if (hears()) end = std::min(end, clock.now() + std::max<Duration>(clock.now() - t0, Milliseconds(1)));
    co_await ears_->bell->wait_until(end);
  }
}

asio::awaitable<void> Place::keep_listening(std::shared_ptr<Ears> ears, std::size_t server) {
  Electorate& electorate = ears->electorate;
  const Clock& clock = electorate.clock();
  Duration deafness = shortest_deafness;
  bool again = false;
  while (!ears->over) {
    Ears::Ear& ear = ears->ears[server];
    const std::weak_ptr<Ears> weak = ears;
    const std::function<void(Call)> heard = [weak, server](Call call) {
      if (const auto all = weak.lock(); all && !all->over) all->hear(server, call);
    };
    const Instant deadline = clock.now() + electorate.server_timeout();
    const std::optional<Fault> fault = co_await electorate.server(server).listen(ears->resource, ears->id, heard, deadline);
    if (ears->over) co_return;
    ear.answered = true;
    ear.fault = fault;
    ear.hears = !fault.has_value();
    // What was called meanwhile went unheard.
    if (ear.hears && again) ears->hear(server, Call::look);
    again = true;
    ears->bell->ring();
    bool cut_off = !ear.hears;
    if (ear.hears) {
      const Instant began = clock.now();
      while (ear.hears && !ears->over) co_await ear.deaf->wait_until(Instant::max());
      cut_off = clock.now() - began < sound_hearing;
    }
    if (!cut_off) deafness = shortest_deafness;
    const bool denied = fault && fault->kind == FaultKind::denied;
    const Duration pause = denied ? Duration(denied_deafness) : jittered(deafness, electorate.random());
    if (cut_off) deafness = std::min<Duration>(2 * deafness, longest_deafness);
    // Whatever rings: the end of a connection that failed does, too.
    const Instant next = cut_off ? clock.now() + pause : clock.now();
    while (!ears->over && clock.now() < next) co_await ear.deaf->wait_until(next);
  }
}

void Place::stop_listening() {
  ears_->over = true;
  for (std::size_t i = 0; i < electorate_.size(); ++i) {
    electorate_.server(i).stop_listening();
    ears_->ears[i].deaf->ring();
  }
}

LineEntry Place::entry(std::size_t server) const {
  const bool polls = !ears_->ears[server].hears;
  return {ears_->id, ticket_, polls, polls ? polling_entry_life : entry_life};
}

void Place::leave() {
  for (std::size_t i = 0; i < electorate_.size(); ++i) electorate_.server(i).leave(resource_, ears_->id);
  in_line_ = false;
}

void Place::doubt(std::size_t server) {
  Ears::Ear& ear = ears_->ears[server];
  if (!ear.hears) return;
  electorate_.server(server).stop_listening();
  ear.hears = false;
  ear.deaf->ring();
}

bool Place::hears() const {
  return ears_->number_where(&Ears::Ear::hears) >= quorum_of(electorate_.size());
}

std::vector<ServerFault> Place::deaf_to() const {
  std::vector<ServerFault> faults;
  for (std::size_t i = 0; i < electorate_.size(); ++i) {
    const Ears::Ear& ear = ears_->ears[i];
    if (!ear.hears && ear.fault) faults.push_back({electorate_.server(i).name(), *ear.fault});
  }
  return faults;
}

void Place::begin_look() {
  in_line_ = true;
  for (Ears::Ear& ear : ears_->ears) ear.called = ear.stood_down = false;
  ears_->first_call.reset();
  ears_->stand_by_until.reset();
}

asio::awaitable<bool> Place::wait(Instant when, Duration gathering, Interrupt& interrupt) {
  const Clock& clock = electorate_.clock();
  const Interrupt::Listener listener(interrupt, *ears_->bell);
  while (!interrupt.raised()) {
    if (ears_->number_where(&Ears::Ear::called) >= quorum_of(electorate_.size())) co_return false;
    Instant end = std::min(when, ears_->stand_by_until.value_or(when));
    if (ears_->first_call) end = std::min(end, *ears_->first_call + gathering);
    if (clock.now() >= end) co_return ears_->first_call && end == *ears_->first_call + gathering;
    co_await ears_->bell->wait_until(end);
  }
  co_return false;
}

}  // namespace redlock
