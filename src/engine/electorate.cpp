#include "engine/electorate.hpp"

#include <algorithm>

#include "core/backoff.hpp"
#include "core/decision.hpp"
#include "core/validity.hpp"
#include "engine/ballot.hpp"
#include "support/spawn.hpp"

namespace redlock {
namespace {

/// How much slower than the quorum a server may be and still hear what it was asked. Long for a network, short for a person.
constexpr Milliseconds straggler_time{100};

/// The lock's key, or one made of it, is in an attempt and its undo twenty times; servers read 16 KiB at a time.
constexpr std::size_t longest_key_for_one_read = 512;

/// How long a server that answers on one connection may take to read what lay on another before: many turns of its event loop.
constexpr Milliseconds reading_time{1000};

}  // namespace

Electorate::Electorate(asio::any_io_executor executor, const Clock& clock, RandomBits random,
                       std::vector<std::unique_ptr<LockServer>> servers, Duration server_timeout, Duration restart_guard)
    : executor_(std::move(executor)),
      clock_(clock),
      random_(std::move(random)),
      servers_(std::move(servers)),
      answered_(servers_.size(), true),
      ever_answered_(servers_.size(), false),
      answer_(clock.make_bell()),
      cleared_(clock.make_bell()),
      faults_(servers_.size()),
      server_timeout_(server_timeout),
      restart_guard_(servers_.size() < smallest_guarded ? Duration::zero() : restart_guard) {}

bool fits_into_one_read(const Resource& resource) {
  return resource.key().size() <= longest_key_for_one_read;
}

std::vector<std::string> Electorate::names() const {
  std::vector<std::string> names;
  for (const auto& server : servers_) names.push_back(server->name());
  return names;
}

void Electorate::take_back(std::size_t server, const Resource& resource, const Token& token, Ttl ttl, std::optional<Requeue> requeue) {
  const Leftover leftover{server, resource, token, clock_.now() + longest_stay(ttl)};
  servers_[server]->take_back(resource, token, std::move(requeue), [this, leftover] { clear_away(leftover); });
}

void Electorate::clear_away(Leftover leftover) {
  leftovers_.push_back(std::make_shared<const Leftover>(std::move(leftover)));
  spawn(executor_, [this, added = leftovers_.back()] { return release_again(added); });
}

asio::awaitable<void> Electorate::release_again(std::shared_ptr<const Leftover> leftover) {
  bool once_more = leftover->unread;
  Duration delay = unavailable_delay(0, random_());
  for (unsigned k = 1; clock_.now() < leftover->until; ++k) {
    co_await sleep_until(clock_, std::min(leftover->until, clock_.now() + delay));
    if (closing_) co_return;  // and it stays in the list
    ReleaseRequest request{leftover->resource, leftover->token};
    request.keep = std::max(Duration::zero(), leftover->keep_until - clock_.now());
    const ReleaseVote vote = co_await servers_[leftover->server]->release(request, clock_.now() + server_timeout_);
    if (closing_ && !is_final(vote)) co_return;
    if (is_final(vote) && !std::exchange(once_more, false)) break;
    delay = unavailable_delay(k, random_());
    if (is_final(vote)) delay = reading_time;
  }
  std::erase(leftovers_, leftover);
  cleared_->ring();
}

std::vector<Leftover> Electorate::leftovers() const {
  std::vector<Leftover> all;
  for (const auto& leftover : leftovers_) all.push_back(*leftover);
  return all;
}

bool Electorate::has_leftover(std::size_t server, const Resource& resource, const Token& token) const {
  return std::ranges::any_of(leftovers_, [&](const auto& leftover) {
    return leftover->server == server && leftover->resource == resource && leftover->token == token;
  });
}

asio::awaitable<void> Electorate::all_cleared() {
  while (!leftovers_.empty()) co_await cleared_->wait_until(Instant::max());
}

std::vector<ServerFault> Electorate::faults() const {
  std::vector<ServerFault> faults;
  for (std::size_t i = 0; i < size(); ++i) {
    if (faults_[i]) faults.push_back({servers_[i]->name(), *faults_[i]});
  }
  return faults;
}

asio::awaitable<void> Electorate::close(Farewell farewell) {
  closing_ = true;
  struct Progress {
    std::unique_ptr<Bell> bell;
    std::size_t open;
  };
  const auto progress = std::make_shared<Progress>(Progress{clock_.make_bell(), size()});
  if (farewell == Farewell::patient) {
    // Before the connections are half-closed: a server that does not know the scripts yet takes more than one question.
    const Instant end = clock_.now() + std::min<Duration>(straggler_time, server_timeout_);
    bool in_time = true;
    while (in_time && std::find(answered_.begin(), answered_.end(), false) != answered_.end()) in_time = co_await answer_->wait_until(end);
  }
  const Instant now = clock_.now();
  for (std::size_t i = 0; i < size(); ++i) {
    Duration patience = server_timeout_;
    if (!answered_[i] && farewell != Farewell::thorough) patience = Duration::zero();
    const Instant deadline = now + patience;
    spawn(executor_, [progress, server = servers_[i].get(), deadline]() -> asio::awaitable<void> {
      co_await server->close(deadline);
      if (--progress->open == 0) progress->bell->ring();
    });
  }
  while (progress->open > 0) co_await progress->bell->wait_until(Instant::max());
}

}  // namespace redlock
