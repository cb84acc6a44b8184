#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "engine/waiter.hpp"
#include "referee.hpp"
#include "virtual/machine.hpp"

namespace redlock::sim {

/// The plan for one use of the tool.
struct SessionPlan {
  enum class Style {
    run,        ///< keeps the lease; no other process may release it
    while_pid,  ///< keeps the lease; sometimes released by hand
    handed,  ///< `acquire --ttl`: a script works under the lease, extends and releases it by hand
  };
  /// A run on some host that works under the lease, as a user of it.
  struct Use {
    std::size_t host = 0;
    Duration at{};  ///< after the grant
    Milliseconds ttl{};
    Duration work{};
    std::optional<Duration> dies_after;  ///< since it started
  };
  std::size_t host = 0;
  Duration start{};  ///< true time
  Style style = Style::run;
  std::size_t first_key = 0;
  /// How many keys from there on, one after the other. Only the first is handled by hand.
  std::size_t keys = 1;
  Mode mode;
  bool supersedes = false;  ///< as a waiter; then it takes one exclusive lock
  bool replaces = false;    ///< such a holder stops for a newer one of its kind
  std::optional<std::size_t> max_waiting{};
  unsigned priority = 0;
  Milliseconds ttl{};
  Duration server_timeout{};
  WaitPolicy wait;
  Duration work{};
  Duration expire_in{};             ///< the rest of --min-hold
  std::optional<Duration> dies_at;  ///< true time
  /// After the grant: another process with the token extends the lease, with `hand_ttl` as its ttl.
  std::optional<Duration> hand_extend_at;
  Milliseconds hand_ttl{};
  std::optional<Duration> hand_release_at;  ///< after the grant
  std::optional<Duration> nested_at;        ///< after the grant: a nested run of the same key
  Duration nested_work{};
  std::vector<Use> uses{};           ///< not with `run`, which hands nothing over
  std::optional<Duration> once_per;  ///< --once-per
  bool fails = false;                ///< the command does not exit with 0
  bool undisturbed = false;          ///< nothing goes wrong with it or its host
  Duration away_until{};             ///< by then its host goes on, or reaches its servers again
};

class World;

/// The name of a failure for histories and --rate.
const char* word_for(AcquireDecision why);

/// One use of the tool: a process that acquires, keeps and releases, and reports its beliefs to the
/// referee.
class Session {
 public:
  Session(World& world, SessionPlan plan, std::string name);

  asio::awaitable<void> live();

  /// SIGKILL, unless its process has ended.
  void kill();

  [[nodiscard]] const SessionPlan& plan() const noexcept { return plan_; }
  [[nodiscard]] const std::string& name() const noexcept { return process_->name(); }
  [[nodiscard]] bool over() const noexcept { return (over_ || killed_) && users_ == 0; }
  /// Whether it waits for ever for a lock that is held.
  [[nodiscard]] bool waits_for_ever() const noexcept { return !plan_.wait.wait; }
  [[nodiscard]] bool waiting() const noexcept { return waiting_ && !killed_; }
  /// The time since which it has waited and has been able to enter.
  [[nodiscard]] Duration can_enter_since() const {
    return std::max(waiting_since_, plan_.away_until);
  }
  /// When it got the lock, gave up or was killed.
  [[nodiscard]] std::optional<Duration> waited_until() const { return waited_until_; }
  [[nodiscard]] bool killed_in_wait() const noexcept { return waiting_ && killed_; }
  /// Until when an entry that it left in the queue when it was killed may remain there.
  [[nodiscard]] Duration left_queue_until() const noexcept { return left_queue_until_; }
  /// Until then the promise allows that it is not notified.
  void stands_by_until(Duration when) { plan_.away_until = std::max(plan_.away_until, when); }
  /// It no longer waits, and its queue entry keeps others out until then.
  void keeps_others_until(Duration when) {
    if (waiting_) left_queue_until_ = when;
  }
  [[nodiscard]] const Process& process() const noexcept { return *process_; }
  /// When it learned that a quorum has queued it.
  [[nodiscard]] std::optional<Duration> queued_since() const noexcept { return queued_since_; }
  [[nodiscard]] bool held() const noexcept { return held_; }
  [[nodiscard]] std::optional<AcquireDecision> gave_up() const noexcept { return gave_up_; }

 private:
  /// Starts a process that undoes what this one could not.
  void leave_behind(ServerSet& from);

  asio::awaitable<std::shared_ptr<HeldSet>> acquire(ServerSet& server_set);
  asio::awaitable<std::optional<Lease>> acquire_bare(ServerSet& server_set);
  [[nodiscard]] AcquireOrder order(std::size_t key) const;
  /// All of them are valid until `deadline`.
  void note_grant(std::vector<Lease> leases, Instant deadline);
  /// True when that was the last attempt.
  bool note_failure(const WaitFailure& failed);
  asio::awaitable<void> work_under(std::shared_ptr<HeldSet> set);
  /// The command need not run.
  asio::awaitable<void> leave_out(std::shared_ptr<HeldSet> set);
  [[nodiscard]] RunRecord record_of(Instant began) const;
  asio::awaitable<void> work_by_hand(Lease lease);
  asio::awaitable<void> watch(std::shared_ptr<HeldSet> set);
  void note(const HeldSet& set, const SetExtended& event);
  void note(const HeldSet& set, const SetInTrouble& event);
  void note(const HeldSet& set, const SetEnded& event);
  void note(const HeldSet& set, const StopRequested& asked);
  /// A nested run, as this run's command starts it: it uses the parent lease, also when this run
  /// has ended.
  asio::awaitable<void> nest(Lease parent);
  void plan_uses(const Lease& lease);
  /// A run that the lease was handed over to: as long as it works, no other may have the lock,
  /// whatever the keeper does.
  asio::awaitable<void> use(Lease lease, SessionPlan::Use plan);
  /// A run of this process below the parent lease of `order`.
  asio::awaitable<void> run_below(Process& inner, AcquireOrder order, Duration timeout,
                                  Duration work);
  asio::awaitable<void> work_below(Process& inner, const Token& parent,
                                   std::shared_ptr<HeldSet> set, Duration work);
  asio::awaitable<void> extend_by_hand(Lease lease, Milliseconds ttl);
  asio::awaitable<void> release_by_hand(Lease lease);

  World& world_;
  SessionPlan plan_;
  Process* process_;
  Process* nested_ = nullptr;  ///< while it lives
  bool nested_uses_lease_ = false;
  std::size_t users_ = 0;         ///< that have not ended
  std::unique_ptr<Event> event_;  ///< notified when the lease ends
  Interrupt interrupt_;
  bool lease_ended_ = false;
  bool stop_requested_ = false;
  bool over_ = false;
  bool killed_ = false;
  bool waiting_ = false;
  bool held_ = false;
  bool stopped_ = false;
  Duration waiting_since_{};
  std::optional<Duration> waited_until_;
  Duration left_queue_until_{};
  std::optional<Duration> queued_since_;
  std::optional<AcquireDecision> gave_up_;
};

}  // namespace redlock::sim
