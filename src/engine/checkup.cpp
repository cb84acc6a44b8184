#include "engine/checkup.hpp"

#include <memory>

#include "support/spawn.hpp"

namespace redlock {
namespace {

/// Long enough for the trial on the slowest server that is worth having, and short enough when we are killed in between.
constexpr std::chrono::seconds probe_ttl{30};

constexpr std::string_view probe_prefix = "redlock-cli-doctor:";

/// The trial of one server.
class Trial {
 public:
  Trial(Electorate& electorate, LockServer& server, Resource key, bool own_key)
      : electorate_(electorate), server_(server), key_(std::move(key)), own_key_(own_key), token_(draw_token(electorate)) {}

  asio::awaitable<Checkup> run() {
    auto report = co_await server_.examine(deadline());
    if (!report) {
      checkup_.fault = std::move(report.error());
      co_return std::move(checkup_);
    }
    checkup_.report = std::move(*report);
    co_await lock();
    // Beside the probe key: it may be somebody's, and rights may be limited to such names.
    const auto unused = Resource::from(key_.key().substr(0, Resource::max_bytes / 2) + ":" + token_.secret());
    checkup_.missing_rights = co_await server_.missing_rights(*unused, deadline());
    co_await listen();
    if (own_key_) {
      const auto left = co_await server_.erase(key_, deadline());
      if (left && !checkup_.lock_fault) fail("remove the probe", *left);
    } else {
      server_.take_back(key_, token_);
    }
    co_return std::move(checkup_);
  }

 private:
  /// Whether those who wait can be called. They manage without, so the right to it is all that is looked for.
  asio::awaitable<void> listen() {
    const std::function<void(Call)> nobody = [](Call) {};
    const auto deaf = co_await server_.listen(key_, "doctor", nobody, deadline());
    server_.stop_listening();
    if (!deaf || deaf->kind != FaultKind::denied) co_return;
    const bool command = deaf->text.find("'subscribe'") != std::string::npos;
    checkup_.missing_rights.emplace_back(command ? "subscribe" : "subscribe (to the channels &redlock:wake:*)");
  }

  [[nodiscard]] Instant deadline() const { return electorate_.clock().now() + electorate_.server_timeout(); }

  void fail(std::string step, Fault fault) {
    checkup_.lock_step = std::move(step);
    checkup_.lock_fault = std::move(fault);
  }

  /// True when the vote is what was wanted; else it is told.
  template <class Wanted, class Vote>
  bool passed(const Vote& vote, const char* step) {
    if (std::holds_alternative<Wanted>(vote)) return true;
    const Fault* fault = std::get_if<Fault>(&vote);
    fail(step, fault != nullptr ? *fault : Fault{FaultKind::garbage, "the answer is not what it should be; did somebody interfere?"});
    return false;
  }

  asio::awaitable<void> lock() {
    if (checkup_.report.refuses_scripts) {
      fail("take a lock", *checkup_.report.refuses_scripts);
      co_return;
    }
    const Ttl ttl = *Ttl::from(probe_ttl);
    const Owner owner{"", "", "doctor", "", 0, false};
    const AcquireRequest acquire{key_, token_, ttl, owner};
    const AcquireVote acquired = co_await server_.acquire(acquire, deadline());
    if (std::holds_alternative<Held>(acquired) && !own_key_) {
      checkup_.lock_held = true;
      co_return;
    }
    if (!passed<Granted>(acquired, "take a lock")) co_return;
    const Fence fence = std::get<Granted>(acquired).fence;
    const RaiseRequest raise{key_, token_, fence, ttl};
    const RaiseVote raised = co_await server_.raise_fence(raise, deadline());
    if (!passed<Raised>(raised, "raise the fence")) co_return;
    const ExtendRequest extend{key_, token_, ttl};
    const ExtendVote extended = co_await server_.extend(extend, deadline());
    if (!passed<Extended>(extended, "extend a lock")) co_return;
    const InspectVote seen = co_await server_.inspect(key_, std::nullopt, deadline());
    if (!passed<Taken>(seen, "see who holds a lock")) co_return;
    const ReleaseRequest release{key_, token_, /*by_hand=*/false, Duration::zero()};
    const ReleaseVote released = co_await server_.release(release, deadline());
    if (!passed<Released>(released, "release a lock")) co_return;
    const HealRequest heal{key_, token_, ttl, fence, std::get<Extended>(extended).provenance};
    const HealVote healed = co_await server_.heal(heal, deadline());
    if (!passed<Healed>(healed, "give a lock back")) co_return;
    const ReleaseRequest by_hand{key_, token_, /*by_hand=*/true, Duration::zero()};
    const ReleaseVote given_up = co_await server_.release(by_hand, deadline());
    if (!passed<Released>(given_up, "release a lock by hand")) co_return;
    // A holder must learn that it was released and not lost.
    const ExtendVote told = co_await server_.extend(extend, deadline());
    const NotOurs* not_ours = std::get_if<NotOurs>(&told);
    if (not_ours == nullptr || not_ours->why != NotOurs::Why::released) {
      fail("remember a release by hand", Fault{FaultKind::denied, "it was not remembered"});
    }
  }

  Electorate& electorate_;
  LockServer& server_;
  Resource key_;
  bool own_key_;
  Token token_;
  Checkup checkup_;
};

}  // namespace

asio::awaitable<std::vector<Checkup>> check_up(Electorate& electorate, std::optional<Resource> key) {
  struct Progress {
    std::unique_ptr<Bell> bell;
    std::vector<Checkup> checkups;
    std::size_t open;
  };
  const auto progress = std::make_shared<Progress>();
  progress->bell = electorate.clock().make_bell();
  progress->checkups.resize(electorate.size());
  progress->open = electorate.size();
  for (std::size_t i = 0; i < electorate.size(); ++i) {
    // A key each: the same one at a server that was given twice would look like an interference.
    const Resource probe = key ? *key : *Resource::from(std::string(probe_prefix) + draw_token(electorate).secret());
    spawn(electorate.executor(), [&electorate, progress, i, probe, own = !key.has_value()]() -> asio::awaitable<void> {
      Trial trial(electorate, electorate.server(i), probe, own);
      progress->checkups[i] = co_await trial.run();
      if (--progress->open == 0) progress->bell->ring();
    });
  }
  while (progress->open > 0) co_await progress->bell->wait_until(Instant::max());
  co_return std::move(progress->checkups);
}

}  // namespace redlock
