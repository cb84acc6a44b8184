#include "engine/server_set.hpp"

#include <algorithm>
#include <iterator>

#include "core/backoff.hpp"
#include "core/decision.hpp"
#include "core/validity.hpp"
#include "engine/round.hpp"
#include "store/script_calls.hpp"
#include "support/spawn.hpp"

namespace redlock {
namespace {

/// How much longer than the quorum a server may take to receive a question before its connection is
/// closed. Long for a network, short for a user.
constexpr Milliseconds straggler_time{100};

/// How long a server that answers on one connection may take to read what was sent on another one
/// before: many iterations of its event loop.
constexpr Milliseconds reading_time{1000};

}  // namespace

ServerSet::ServerSet(asio::any_io_executor executor, const Clock& clock, RandomBits random,
                     std::vector<std::unique_ptr<LockServer>> servers, Duration server_timeout,
                     Duration restart_guard)
    : executor_(std::move(executor)),
      clock_(clock),
      random_(std::move(random)),
      servers_(std::move(servers)),
      answered_(servers_.size(), true),
      ever_answered_(servers_.size(), false),
      answer_(clock.make_event()),
      cleared_(clock.make_event()),
      faults_(servers_.size()),
      server_timeout_(server_timeout),
      // The options check this, too, but not every caller uses them.
      restart_guard_(servers_.size() < min_guarded_servers ? Duration::zero() : restart_guard) {
  for (const auto& server : servers_) {
    server->on_disconnect([this] {
      for (const auto& event : disconnection_events_) {
        if (const auto alive = event.lock()) alive->notify();
      }
    });
  }
}

std::shared_ptr<Event> ServerSet::disconnection_event() {
  std::erase_if(disconnection_events_, [](const auto& event) { return event.expired(); });
  std::shared_ptr<Event> event = clock_.make_event();
  disconnection_events_.push_back(event);
  return event;
}

std::vector<std::string> ServerSet::names() const {
  std::vector<std::string> names;
  for (const auto& server : servers_) names.push_back(server->name());
  return names;
}

void ServerSet::note_answer(std::size_t server, std::optional<Fault> fault) {
  if (!fault || fault->kind != FaultKind::silent) {
    answered_[server] = ever_answered_[server] = true;
    answer_->notify();
  }
  faults_[server] = std::move(fault);
}

void ServerSet::undo(std::size_t server, const Resource& resource, const Token& token, Ttl ttl,
                     std::optional<Requeue> requeue, Hold stray) {
  // A repetition does not queue the waiter again: by then it has polled again, or has left.
  Leftover leftover{server, ReleaseRequest{resource, token}, clock_.now() + max_retention(ttl),
                    !fits_into_one_read(resource)};
  leftover.release.slots = std::move(stray.slots);
  leftover.release.slot_names = std::move(stray.slot_names);
  servers_[server]->undo(resource, token, std::move(requeue),
                         [this, leftover] { clear_away(leftover); });
}

void ServerSet::clear_away(Leftover leftover) {
  const ReleaseRequest& release = leftover.release;
  const Leftovers others = leftovers_of(leftover.server, release.resource);
  for (const auto& same : others) {
    if (same->release.token != release.token || same->release.user != release.user) continue;
    same->until = std::max(same->until, leftover.until);
    if (release.slots.empty() && release.slot_names.empty()) {
      same->release.slots.clear();
      same->release.slot_names.clear();
    }
    // The undo of an attempt asks for nothing beside the end of its lease.
    if (release.run || release.expire_in > Duration::zero() || release.may_have_users)
      same->release = std::move(leftover.release);
    same->unread = true;  // the release under way may be too early for the new leftover
    return;
  }
  const auto added = leftovers_.emplace_back(std::make_shared<Leftover>(std::move(leftover)));
  if (!others.empty()) return;
  spawn(executor_, [this, server = added->server, resource = added->release.resource] {
    return release_again(server, resource);
  });
}

asio::awaitable<void> ServerSet::release_again(std::size_t server, Resource resource) {
  Duration delay = unavailable_delay(0, random_());
  for (unsigned k = 1;; ++k) {
    co_await sleep_until(clock_, clock_.now() + delay);
    if (closing_) co_return;  // they stay in the list
    delay = unavailable_delay(k, random_());

    const Leftovers left = leftovers_of(server, resource);
    for (const auto& leftover : left) {
      if (clock_.now() < leftover->until) {
        const Instant now = clock_.now();
        const ReleaseRequest request = as_of(leftover->release, now);
        const ReleaseVote vote = co_await servers_[server]->release(request, now + server_timeout_);
        if (closing_ && !is_final(vote)) co_return;
        if (!is_final(vote)) break;  // the other leftovers would fare no better
        if (std::exchange(leftover->unread, false)) {
          delay = reading_time;
          continue;
        }
      }
      std::erase(leftovers_, leftover);
      cleared_->notify();
    }
    if (leftovers_of(server, resource).empty()) co_return;
  }
}

ServerSet::Leftovers ServerSet::leftovers_of(std::size_t server, const Resource& resource) const {
  Leftovers some;
  std::ranges::copy_if(leftovers_, std::back_inserter(some), [&](const auto& leftover) {
    return leftover->server == server && leftover->release.resource == resource;
  });
  return some;
}

std::vector<Leftover> ServerSet::leftovers() const {
  std::vector<Leftover> all;
  for (const auto& leftover : leftovers_) all.push_back(*leftover);
  return all;
}

bool ServerSet::has_leftover(std::size_t server, const Resource& resource,
                             const Token& token) const {
  return std::ranges::any_of(leftovers_of(server, resource), [&](const auto& leftover) {
    return leftover->release.token == token && leftover->release.user.empty();
  });
}

asio::awaitable<void> ServerSet::all_cleared() {
  while (!leftovers_.empty()) co_await cleared_->wait_until(Instant::max());
}

std::vector<ServerFault> ServerSet::faults() const {
  std::vector<ServerFault> faults;
  for (std::size_t i = 0; i < size(); ++i) {
    if (faults_[i]) faults.push_back({servers_[i]->name(), *faults_[i]});
  }
  return faults;
}

asio::awaitable<void> ServerSet::close(CloseMode close_mode) {
  closing_ = true;
  if (close_mode == CloseMode::linger) {
    // Wait before the connections are half-closed: a server that does not know the scripts yet
    // needs a second request.
    const Instant end = clock_.now() + std::min<Duration>(straggler_time, server_timeout_);
    bool in_time = true;
    while (in_time && std::find(answered_.begin(), answered_.end(), false) != answered_.end())
      in_time = co_await answer_->wait_until(end);
  }
  const Instant now = clock_.now();
  const std::vector<bool> answered = answered_;
  const auto close_one = [&](std::size_t i) -> asio::awaitable<void> {
    const bool is_awaited = answered[i] || close_mode == CloseMode::drain;
    const Instant deadline = is_awaited ? now + server_timeout_ : now;
    co_await servers_[i]->close(deadline);
  };
  co_await run_all(executor_, clock_, size(), close_one);
}

}  // namespace redlock
