#include "engine/electorate.hpp"

#include "core/decision.hpp"
#include "support/spawn.hpp"

namespace redlock {
namespace {

/// How much slower than the quorum a server may be and still hear what it was asked. Long for a network, short for a person.
constexpr Milliseconds straggler_time{100};

}  // namespace

Electorate::Electorate(asio::any_io_executor executor, const Clock& clock, RandomBits random,
                       std::vector<std::unique_ptr<LockServer>> servers, Duration server_timeout, Duration restart_guard)
    : executor_(std::move(executor)),
      clock_(clock),
      random_(std::move(random)),
      servers_(std::move(servers)),
      answered_(servers_.size(), true),
      faults_(servers_.size()),
      server_timeout_(server_timeout),
      restart_guard_(servers_.size() < smallest_guarded ? Duration::zero() : restart_guard) {}

std::vector<std::string> Electorate::names() const {
  std::vector<std::string> names;
  for (const auto& server : servers_) names.push_back(server->name());
  return names;
}

std::vector<ServerFault> Electorate::faults() const {
  std::vector<ServerFault> faults;
  for (std::size_t i = 0; i < size(); ++i) {
    if (faults_[i]) faults.push_back({servers_[i]->name(), *faults_[i]});
  }
  return faults;
}

asio::awaitable<void> Electorate::close(Farewell farewell) {
  struct Progress {
    std::unique_ptr<Bell> bell;
    std::size_t open;
  };
  const auto progress = std::make_shared<Progress>(Progress{clock_.make_bell(), size()});
  const Instant now = clock_.now();
  for (std::size_t i = 0; i < size(); ++i) {
    Duration patience = server_timeout_;
    if (!answered_[i] && farewell == Farewell::brief) patience = Duration::zero();
    if (!answered_[i] && farewell == Farewell::patient) patience = std::min<Duration>(straggler_time, patience);
    const Instant deadline = now + patience;
    spawn(executor_, [progress, server = servers_[i].get(), deadline]() -> asio::awaitable<void> {
      co_await server->close(deadline);
      if (--progress->open == 0) progress->bell->ring();
    });
  }
  while (progress->open > 0) co_await progress->bell->wait_until(Instant::max());
}

}  // namespace redlock
