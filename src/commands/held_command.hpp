#pragma once

#include <memory>
#include <optional>

#include "commands/guarded.hpp"
#include "commands/hold_report.hpp"
#include "commands/options.hpp"
#include "commands/session.hpp"
#include "guard/front.hpp"
#include "guard/front_link.hpp"
#include "guard/isolation.hpp"
#include "guard/signals.hpp"
#include "guard/supervisor.hpp"
#include "output/event_writer.hpp"

namespace redlock::commands {

/// The command of a `run`, with its process tree, as the holder guards it.
class HeldCommand final : public Guarded {
 public:
  /// All must outlive it.
  HeldCommand(Session& session, const RunOptions& options, guard::Front& front,
              guard::FrontLink& link, const guard::InheritedSignals& inherited,
              const guard::Isolation& isolation, HoldReport& report);

  asio::awaitable<Started> start(std::shared_ptr<HeldSet> leases, Instant granted) override;
  void move_deadline(Instant deadline, Instant next_round) override;
  void lease_has_ended(const SetEnded& event) override;
  void stop(StopReason why) override;
  asio::awaitable<Parting> finish() override;
  asio::awaitable<void> released(SetReleaseResult result) override;
  void conclude_interrupted() override;
  std::optional<FrontReport> last_report() override;

 private:
  asio::awaitable<void> watch_parent_process();

  [[nodiscard]] bool is_fresh() const;
  asio::awaitable<Started> start_once_agreed(Instant granted);
  Result<void, guard::ExecFailure> fork();
  Started start_now();
  Started fail_to_start(const guard::ExecFailure& failure);
  asio::awaitable<void> report_news();
  void report(const guard::CommandNews& news);

  Parting conclude_end(Instant ended);
  void report_left(std::string processes, bool killed, bool left_to_users);

  Session& session_;
  const RunOptions& options_;
  guard::Front& front_;
  guard::FrontLink& link_;
  const guard::InheritedSignals& inherited_;
  const guard::Isolation& isolation_;
  HoldReport& report_;
  output::RunState& state_;                      ///< of the report
  std::optional<guard::Supervisor> supervisor_;  ///< of the current or last command
  std::shared_ptr<HeldSet> leases_;              ///< the current or last ones
  Instant granted_at_;                           ///< when held times begin
  Duration expire_in_{};      ///< how long the leases last after the release: --min-hold
  bool success_ = false;      ///< the release records a success
  bool interrupted_ = false;  ///< it would, if the command had not been asked to end
};

/// The main function of the holder process of a `run`: waits for the locks, runs the command under
/// them, releases them, and reports to the front process. `front` is the object that forked it;
/// `events` is the writer for --events-fd, or null. Never returns.
[[noreturn]] void hold_command(const SessionOptions& about, const RunOptions& options,
                               guard::Front& front, guard::SignalGate& gate,
                               const guard::InheritedSignals& inherited,
                               const guard::Isolation& isolation, output::EventWriter* events);

}  // namespace redlock::commands
