#pragma once

#include <memory>
#include <optional>
#include <string>

#include "commands/acquire_output.hpp"
#include "commands/guarded.hpp"
#include "commands/hold_report.hpp"
#include "commands/options.hpp"
#include "commands/session.hpp"
#include "guard/front.hpp"
#include "guard/front_link.hpp"
#include "guard/process_guard.hpp"
#include "guard/signals.hpp"

namespace redlock::commands {

/// What `acquire` keeps leases for in the background, as the holder guards it: the process of
/// --while-pid, or with --detach none that it could stop. It starts when the script has the leases,
/// and ends with the process, with --max-hold, or when another process releases the leases.
class HeldScript final : public Guarded {
 public:
  /// All must outlive it. `job_group`: the process group of the script's job.
  HeldScript(Session& session, AcquireOptions& options, guard::FrontLink& link, pid_t job_group,
             HoldReport& report);

  asio::awaitable<Started> start(std::shared_ptr<HeldSet> leases, Instant granted) override;
  void move_deadline(Instant deadline, Instant next_round) override;
  void lease_has_ended(const SetEnded& event) override;
  void stop(StopReason why) override;
  asio::awaitable<Parting> finish() override;
  asio::awaitable<void> released(SetReleaseResult result) override;
  void conclude_interrupted() override;
  std::optional<FrontReport> last_report() override;

 private:
  asio::awaitable<void> watch_process();
  asio::awaitable<std::optional<std::string>> hand_over();
  asio::awaitable<bool> reach_max_hold();
  [[nodiscard]] StopRequest stop_request_at_max_hold() const;
  asio::awaitable<Parting> finish_process();
  void announce_stop(StopReason why);
  [[nodiscard]] std::string process_has_ended() const;

  Session& session_;
  const StopPlan& plan_;
  const Owner& owner_;             ///< of the leases
  proc::WatchedProcess* process_;  ///< null: none
  guard::FrontLink& link_;
  pid_t job_group_;
  HoldReport& report_;
  AcquireOutput output_;
  std::optional<guard::ProcessGuard> guard_;  ///< of the process
  std::shared_ptr<HeldSet> leases_;
  std::unique_ptr<Event> changed_;  ///< notified when the process or a lease has ended
  Instant granted_at_;
  bool reported_ = false;                ///< the front process has the leases, or had them
  bool released_by_hand_ = false;        ///< another process released one of the leases
  std::optional<std::string> undone_{};  ///< why the script does not get the leases
};

/// The main function of a holder process that `acquire` leaves in the background: acquires the
/// leases, reports the script's output through `front`, closes the caller's descriptors, renews,
/// and releases. Leases that do not reach the script are released at once.
///
/// With Background::process it keeps the leases while that process lives, but no longer than
/// max_hold; the loss of a lease stops the process and its descendants as the plan says. Without a
/// process it keeps the leases until max_hold ends or one of them is lost, which ends the holder
/// process silently. In either case, it also ends silently when another process releases one.
///
/// `front` is the object that forked it. Never returns.
[[noreturn]] void hold_script(const SessionOptions& about, AcquireOptions& options,
                              guard::Front& front, guard::SignalGate& gate);

}  // namespace redlock::commands
