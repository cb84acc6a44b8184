#include "store/lock_probe.hpp"

#include <chrono>

#include "support/random.hpp"

namespace redlock {
namespace {

/// Long enough for the probe on any usable server, and short in case we are killed during the
/// probe.
constexpr std::chrono::seconds probe_ttl{30};

constexpr std::string_view own_key_prefix = "redlock-cli-doctor:";

}  // namespace

LockProbe::LockProbe(LockServer& server, const Clock& clock, const DiagnosisRequest& request)
    : server_(server),
      clock_(clock),
      timeout_(request.server_timeout),
      token_(Token::draw(random_bits)),
      own_key_(!request.key),
      // One key for each server. With one key for all, a server that was configured twice would
      // look like a conflict with another client.
      key_(request.key
               ? *request.key
               : *Resource::from(std::string(own_key_prefix) + Token::draw(random_bits).secret())) {
}

Resource LockProbe::unused_key() const {
  return *Resource::from(key_.key().substr(0, Resource::max_bytes / 2) + ":" + token_.secret());
}

void LockProbe::fail(std::string step, Fault fault) {
  if (fault_) return;
  step_ = std::move(step);
  fault_ = std::move(fault);
}

/// Whether the vote is the expected one; records the step as failed if not.
template <class Wanted, class Vote>
bool LockProbe::passed(const Vote& vote, const char* step) {
  if (std::holds_alternative<Wanted>(vote)) return true;
  const Fault* fault = std::get_if<Fault>(&vote);
  fail(step, fault != nullptr
                 ? *fault
                 : Fault{FaultKind::garbage,
                         "the answer is not as expected; did another client interfere?"});
  return false;
}

asio::awaitable<void> LockProbe::run() {
  const Ttl ttl = *Ttl::from(probe_ttl);
  const Owner owner{"", "", "doctor", "", 0, false};

  const AcquireRequest acquire{key_, token_, ttl, owner};
  const AcquireVote acquired = co_await server_.acquire(acquire, deadline());
  if (std::holds_alternative<Held>(acquired) && !own_key_) {
    held_ = true;
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
  runs_unreadable_ = std::get<Taken>(seen).runs.unreadable;

  const ReleaseRequest release{key_, token_, /*by_hand=*/false, Duration::zero()};
  const ReleaseVote released = co_await server_.release(release, deadline());
  if (!passed<Released>(released, "release a lock")) co_return;

  const HealRequest heal{key_, token_, ttl, fence, std::get<Extended>(extended).provenance};
  const HealVote healed = co_await server_.heal(heal, deadline());
  if (!passed<Healed>(healed, "give a lock back")) co_return;

  const ReleaseRequest by_hand{key_, token_, /*by_hand=*/true, Duration::zero()};
  const ReleaseVote given_up = co_await server_.release(by_hand, deadline());
  if (!passed<Released>(given_up, "release a lock by hand")) co_return;

  // The holder of a lease that was released by hand must learn that it was released, not lost.
  const ExtendVote after_release = co_await server_.extend(extend, deadline());
  const NotOurs* not_ours = std::get_if<NotOurs>(&after_release);
  if (not_ours == nullptr || not_ours->why != NotOurs::Why::released) {
    fail("remember a release by hand", Fault{FaultKind::denied, "it was not remembered"});
  }
}

Finding LockProbe::finding(const std::vector<std::string>& missing) const {
  const std::string probe = "rights";
  std::string rights;
  for (const std::string& right : missing) rights += " +" + right;
  if (fault_) {
    const std::string failed = "cannot " + step_ + ": ";
    const bool may_lock_others = own_key_ && fault_->kind == FaultKind::denied;
    const std::string advice =
        may_lock_others ? "if the user may lock certain keys only, name one: redlock-cli doctor KEY"
                        : "";
    if (rights.empty()) return {Level::bad, probe, failed + fault_->text, advice};
    // The text of a denial may refer the user to `doctor`. This is `doctor`: name the rights
    // instead.
    const bool is_named = fault_->text.find("redlock-cli doctor") != std::string::npos;
    const std::string why = is_named ? std::string() : fault_->text + "; ";
    return {Level::bad, probe, failed + why + "missing rights:" + rights, advice};
  }
  if (!rights.empty()) {
    return {Level::warning, probe, "locks work, but these rights are missing:" + rights};
  }
  if (runs_unreadable_) {
    return {Level::warning, probe,
            "locks work, but the last run cannot be recorded (--once-per, --max-age): " +
                runs_unreadable_->text};
  }
  if (held_)
    return {Level::unknown, probe,
            "another process holds the key, so extending and releasing were not tried"};
  return {Level::good, probe, "a lock can be acquired, extended, healed and released"};
}

}  // namespace redlock
