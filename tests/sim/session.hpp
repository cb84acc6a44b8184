#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "engine/set_waiter.hpp"
#include "referee.hpp"
#include "virtual/machine.hpp"

namespace redlock::sim {

/// What one use of the tool is to do.
struct SessionPlan {
  enum class Style {
    run,        ///< keeps the lease, nobody else may release it
    while_pid,  ///< keeps it, too; released by hand, now and then
    handed,  ///< `acquire --ttl`: the script works with what it got, extends and releases by hand
  };
  std::size_t host = 0;
  Duration start{};  ///< true time
  Style style = Style::run;
  std::size_t first_key = 0;
  std::size_t keys =
      1;  ///< so many from there on, one after the other; by hand only the first is dealt with
  Mode mode;
  bool supersedes = false;  ///< as a waiter; then it takes one lock alone
  Milliseconds ttl{};
  Duration server_timeout{};
  WaitPolicy wait;
  Duration work{};
  Duration expire_in{};             ///< --min-hold, what is left of it
  std::optional<Duration> dies_at;  ///< true time
  std::optional<Duration>
      hand_extend_at;  ///< after the grant: somebody with the token gives it another ttl
  Milliseconds hand_ttl{};
  std::optional<Duration> hand_release_at;  ///< after the grant
  std::optional<Duration> nested_at;        ///< after the grant: a run of the same key below it
  Duration nested_work{};
  std::optional<Duration> once_per;  ///< --once-per
  bool fails = false;                ///< the command does not end with 0
  bool undisturbed = false;          ///< nothing happens to it or its host
  Duration away_until{};             ///< by then its host goes on, or has its servers back
};

class World;

/// For people.
const char* word_for(AttemptFailure::Why why);

/// One use of the tool: a process that acquires, keeps, releases, and says to the referee what it
/// believes.
class Session {
 public:
  Session(World& world, SessionPlan plan, std::string name);

  asio::awaitable<void> live();

  /// SIGKILL, unless its process has ended.
  void kill();

  [[nodiscard]] const SessionPlan& plan() const noexcept { return plan_; }
  [[nodiscard]] const std::string& name() const noexcept { return process_->name(); }
  [[nodiscard]] bool over() const noexcept { return over_ || killed_; }
  /// Waits for a lock that is held for as long as it takes.
  [[nodiscard]] bool patient() const noexcept { return !plan_.wait.wait; }
  [[nodiscard]] bool waiting() const noexcept { return waiting_ && !killed_; }
  /// Since when it waits and is there to be let in.
  [[nodiscard]] Duration can_enter_since() const {
    return std::max(waiting_since_, plan_.away_until);
  }
  /// When it was let in, gave up or was killed.
  [[nodiscard]] std::optional<Duration> waited_until() const { return waited_until_; }
  [[nodiscard]] bool killed_in_wait() const noexcept { return waiting_ && killed_; }
  /// Being killed, it left an entry in the queue that only its end removes.
  [[nodiscard]] Duration left_queue_until() const noexcept { return left_queue_until_; }
  /// Until then it is not told, as promised.
  void stands_by_until(Duration when) { plan_.away_until = std::max(plan_.away_until, when); }
  /// It waits no more, and what it left keeps others out for so long.
  void keeps_others_until(Duration when) {
    if (waiting_) left_queue_until_ = when;
  }
  [[nodiscard]] const Process& process() const noexcept { return *process_; }
  /// When it was told that a quorum has it in the queue.
  [[nodiscard]] std::optional<Duration> queued_since() const noexcept { return queued_since_; }
  [[nodiscard]] bool held() const noexcept { return held_; }
  [[nodiscard]] std::optional<AttemptFailure::Why> gave_up() const noexcept { return gave_up_; }

 private:
  /// What the process leaves for one that goes on behind it.
  void leave_behind(std::vector<Leftover> leftovers);

  asio::awaitable<std::shared_ptr<HeldSet>> acquire(ServerSet& server_set);
  asio::awaitable<std::optional<Lease>> acquire_bare(ServerSet& server_set);
  [[nodiscard]] AcquireOrder order(std::size_t key) const;
  /// All of them, which are good until then.
  void note_grant(std::vector<Lease> leases, Instant deadline);
  /// True when that was the last try.
  bool note_failure(const AttemptFailure& failure, bool final);
  asio::awaitable<void> work_under(std::shared_ptr<HeldSet> set);
  /// The command need not run.
  asio::awaitable<void> leave_out(std::shared_ptr<HeldSet> set);
  [[nodiscard]] RunRecord record_of(Instant began) const;
  asio::awaitable<void> work_by_hand(Lease lease);
  void keep(const std::shared_ptr<HeldSet>& set);
  /// A `run` below this one, as its command starts it: it relies on our lease as long as that
  /// stands.
  asio::awaitable<void> nest(Lease parent);
  asio::awaitable<void> work_below(Process& inner, const Token& parent,
                                   std::shared_ptr<HeldSet> set);
  asio::awaitable<void> extend_by_hand(Lease lease, Milliseconds ttl);
  asio::awaitable<void> release_by_hand(Lease lease);

  World& world_;
  SessionPlan plan_;
  Process* process_;
  Process* nested_ = nullptr;     ///< while it lives
  std::unique_ptr<Event> event_;  ///< rung when the lease ends
  Interrupt interrupt_;
  bool lease_ended_ = false;
  bool over_ = false;
  bool killed_ = false;
  bool waiting_ = false;
  bool held_ = false;
  bool stopped_ = false;
  Duration waiting_since_{};
  std::optional<Duration> waited_until_;
  Duration left_queue_until_{};
  std::optional<Duration> queued_since_;
  std::optional<AttemptFailure::Why> gave_up_;
};

}  // namespace redlock::sim
