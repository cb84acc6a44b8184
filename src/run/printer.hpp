#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "output/console.hpp"
#include "output/event.hpp"
#include "run/wait_line.hpp"
#include "run/wait_report.hpp"
#include "support/clock.hpp"

namespace redlock::run {

/// What `run` and `acquire` say of their events: messages, the line that shows a wait on a
/// terminal, and with --sd-notify what the service manager shows. What went wrong is always told,
/// the end of a wait that was shown, and the rest with -v.
class Printer final : public output::EventListener {
 public:
  /// Brings NAME=value to the service manager.
  using NotifyService = std::function<void(const std::string& name, std::string value)>;

  /// `job_group`: the process group by which the terminal knows us. `tells_end`: the last words are
  /// for the user; otherwise they stand in a JSON report on the same descriptor. The console and
  /// the clock must outlive it.
  Printer(const output::Console& console, const Clock& clock,
          const std::vector<Resource>& resources, pid_t job_group, bool json, bool tells_end);

  /// --sd-notify, so that a standby can be told from the leader: READY=1 at the grant, STOPPING=1
  /// when the command is stopped or has ended; both when it has run already (--once-per).
  void notify(NotifyService service) { service_ = std::move(service); }

  void on(const output::event::Any& event, Milliseconds at) override;

 private:
  void tell(const output::event::Waiting& waiting);
  void tell(const output::event::StillWaiting&);
  void tell(const output::event::HeldAroundUs& held);
  void tell(const output::event::WaitEnded&);
  void tell(const output::event::Superseded&) {}  ///< the conclusion says it
  void tell(const output::event::Fresh& fresh);
  void tell(const output::event::Acquired& acquired);
  void tell(const output::event::ReleasedWhilePaused&);
  void tell(const output::event::Renewed& renewed);
  void tell(const output::event::RenewalFailed& failed);
  void tell(const output::event::VotesChanged& changed);
  void tell(const output::event::Lost& lost);
  void tell(const output::event::Strained& strained);
  void tell(const output::event::Stopping& stopping);
  void tell(const output::event::Unkillable& unkillable);
  void tell(const output::event::Awaiting& awaiting);
  void tell(const output::event::Ended& ended);
  void tell(const output::event::NestedRunsLive& nested);
  void tell(const output::event::Released& released);
  void tell(const output::event::ReleasePending& pending);
  void tell(const output::event::NotRecorded& unrecorded);
  void tell(const output::event::LeftRunning& left);
  void tell(const output::event::Concluded& concluded);
  void tell(const output::event::NotAcquired&) {}  ///< the same
  void status(std::string text) const { notify_service("STATUS", std::move(text)); }
  void notify_service(const std::string& name, std::string value) const {
    if (service_) service_(name, std::move(value));
  }

  const output::Console& console_;
  const Clock& clock_;
  std::string key_;
  pid_t job_group_;
  bool json_;
  bool tells_end_;
  NotifyService service_;
  std::optional<WaitReport> wait_;  ///< the current one
  std::optional<WaitLine> line_;    ///< shows it
  bool wait_shown_ = false;
  bool told_unsubscribed_ = false;
  bool told_mute_ = false;
  std::string status_;  ///< `; exit status 0`, once the command has ended
};

}  // namespace redlock::run
