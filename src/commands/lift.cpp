#include "commands/lift.hpp"

#include <fmt/format.h>

#include <utility>

#include "commands/key_report.hpp"
#include "commands/this_user.hpp"
#include "engine/hold_keeper.hpp"
#include "engine/inspect.hpp"
#include "engine/round.hpp"
#include "output/failure_text.hpp"
#include "output/holder_text.hpp"
#include "output/outcome.hpp"
#include "output/text_parts.hpp"

namespace redlock::commands {
namespace {

using output::CommandResult;

/// One lift, from reading the lock to what it leaves.
class Lifting {
 public:
  /// `session` and `options` must outlive this object.
  Lifting(Session& session, const LiftOptions& options, Resource resource)
      : session_(session), options_(options), resource_(std::move(resource)) {}

  asio::awaitable<output::Outcome> run() {
    co_await read_lock();
    const Inspection found = summarize(votes_);
    if (found.state == InspectState::unavailable)
      co_return unavailable("no quorum answered", faults());
    // A server may show it that was away when the hold was lifted.
    const std::optional<FoundHold> hold = find_hold(shown_by(votes_));
    const bool is_main = hold && (!found.holder || hold->holder.id == found.holder->id);
    const bool fits = hold && !output::slot_mismatch(hold->holder, options_.slot);
    if (is_main && fits) co_return co_await lift(*hold);
    if (found.state == InspectState::free) {
      co_return outcome_of(
          CommandResult::free,
          fmt::format("nothing to release: {} is free", options_.slot ? slot_text() : "the lock"));
    }
    co_return not_on_hold(*found.holder);
  }

 private:
  asio::awaitable<void> read_lock() {
    const AskRequest question{resource_, std::nullopt, options_.slot};
    votes_ = co_await read_holder(session_.server_set(), question);
  }

  asio::awaitable<output::Outcome> lift(FoundHold hold) {
    const std::string held = output::held_text(hold.holder);
    if (options_.only_if && hold.holder.fence != options_.only_if) {
      output::Outcome other =
          outcome_of(CommandResult::lost, "left alone, it has another fence: " + held);
      other.holder = hold.holder;
      co_return other;
    }
    const LiftResult result = co_await lift_hold(session_.server_set(), resource_, hold);
    if (!result.lifted) {
      co_return unavailable("no quorum confirmed that the hold is lifted; repeat the release",
                            result.faults);
    }
    const Owner user = this_user();
    session_.console().audit(fmt::format("{}: {} lifted the hold{}; it was {}",
                                         output::key_text(resource_),
                                         output::person_text(user.user, user.host),
                                         options_.slot ? " of " + slot_text() : "", held));
    co_await read_lock();
    output::Outcome lifted =
        outcome_of(CommandResult::released, (options_.slot ? slot_text() + " lifted" : "lifted") +
                                                users_text(hold.holder.id));
    lifted.holder = hold.holder;
    lifted.faults = result.faults;
    co_return lifted;
  }

  [[nodiscard]] output::Outcome not_on_hold(const Holder& holder) const {
    const std::string held = output::held_text(holder);
    std::string why;
    if (const char* problem = output::slot_mismatch(holder, options_.slot)) {
      why = fmt::format("{}: {}", problem, held);
    } else if (holder.owner && holder.owner->lifted) {
      return outcome_of(CommandResult::released, "already lifted" + users_text(holder.id));
    } else {
      const std::string advice =
          holder.owner && is_held_for_script(*holder.owner)
              ? std::string("release it with the file that `acquire` wrote, or with its token")
              : fmt::format(
                    "if a command holds it, `redlock-cli stop {}{}` ends that command and frees "
                    "the lock",
                    output::key_option(resource_), output::slot_option(options_.slot));
      why = fmt::format(
          "not on hold, and no lease of it is set (--token-file, REDLOCK_LEASE, REDLOCK_TOKEN): "
          "{}; {}",
          held, advice);
    }
    output::Outcome refused = outcome_of(CommandResult::usage, why);
    refused.holder = holder;
    return refused;
  }

  [[nodiscard]] std::string slot_text() const { return "slot " + options_.slot.value_or(""); }

  /// `; run pid 4711 on web1: deploy.sh works on under the lock`, or nothing.
  [[nodiscard]] std::string users_text(const LeaseId& id) const {
    for (const InspectVote& vote : votes_) {
      const auto* taken = std::get_if<Taken>(&vote);
      if (taken == nullptr || taken->holder.id != id || taken->holder.users.empty()) continue;
      const auto& users = taken->holder.users;
      return fmt::format("; {} {} on under the lock", output::users_text(users),
                         users.size() == 1 ? "works" : "work");
    }
    return {};
  }

  [[nodiscard]] std::vector<ServerFault> faults() const {
    return faults_among(session_.server_set(), [&](std::size_t i) { return &votes_[i]; });
  }

  [[nodiscard]] output::Outcome unavailable(const std::string& message,
                                            std::vector<ServerFault> faults) const {
    output::Outcome outcome = outcome_of(output::result_for_faults(faults, votes_.size()),
                                         message + "; " + output::faults_text(faults));
    outcome.faults = std::move(faults);
    return outcome;
  }

  [[nodiscard]] output::Outcome outcome_of(CommandResult result, std::string message) const {
    return output::outcome_of("release", {resource_}, result, std::move(message));
  }

  Session& session_;
  const LiftOptions& options_;
  Resource resource_;
  std::vector<InspectVote> votes_;  ///< the answers of the last round
};

asio::awaitable<ExitAs> lift_all(Session& session, const LiftOptions& options) {
  KeyReport report(session);
  for (const Resource& resource : options.resources) {
    Lifting lifting(session, options, resource);
    output::Outcome outcome = co_await lifting.run();
    report.add(std::move(outcome));
  }
  co_await session.server_set().close(CloseMode::immediate);
  co_return report.finish();
}

}  // namespace

ExitAs lift_holds(Session& session, const LiftOptions& options) {
  return session.run(lift_all(session, options));
}

}  // namespace redlock::commands
