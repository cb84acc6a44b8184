#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "output/console.hpp"
#include "output/event.hpp"
#include "output/status_line.hpp"
#include "output/wait_report.hpp"
#include "proc/watched_process.hpp"
#include "support/clock.hpp"

namespace redlock::output {

/// Prints the events of `run` and `acquire`: as messages, as the status line of a wait on a
/// terminal, and with --sd-notify as the status that the service manager shows. Errors are always
/// printed, and so is the end of a wait that was shown; the rest needs -v.
class Printer final : public output::EventListener {
 public:
  /// Sends NAME=value to the service manager.
  using NotifyService = std::function<void(const std::string& name, std::string value)>;

  /// `job_group`: the process group of our job at the terminal. `reports_end`: whether to print the
  /// conclusion; false if a JSON report on the same descriptor contains it. The console and the
  /// clock must outlive this.
  Printer(const output::Console& console, const Clock& clock,
          const std::vector<Resource>& resources, pid_t job_group, bool json, bool reports_end);

  /// Enables --sd-notify, with which a service manager can tell a leader from a standby: READY=1 is
  /// sent at the grant, STOPPING=1 when the command is stopped or has ended, and both when the
  /// command was skipped (--once-per).
  void notify(NotifyService service) { service_ = std::move(service); }

  /// For --while-pid: what stops the process is reported to its own stderr and to the system log,
  /// because no process waits for our exit status. `script` must outlive this.
  void speak_to(const proc::WatchedProcess& script) { script_ = &script; }

  void on(const output::event::Any& event, Milliseconds at) override;

 private:
  void print(const output::event::Waiting& waiting);
  void print(const output::event::StillWaiting&);
  void print(const output::event::HeldAroundUs& held);
  void print(const output::event::WaitEnded&);
  void print(const output::event::Superseded&) {}  ///< print(Concluded) reports it
  void print(const output::event::Fresh& fresh);
  void print(const output::event::Acquired& acquired);
  void print(const output::event::ReleasedWhilePaused&);
  void print(const output::event::Renewed& renewed);
  void print(const output::event::RenewalFailed& failed);
  void print(const output::event::VotesChanged& changed);
  void print(const output::event::Lost& lost);
  void print(const output::event::Strained& strained);
  void print(const output::event::Stopping& stopping);
  void print(const output::event::ScriptStopping& script);
  void print(const output::event::ScriptUnsafe& unsafe);
  void print(const output::event::Unkillable& unkillable);
  void print(const output::event::Awaiting& awaiting);
  void print(const output::event::Ended& ended);
  void print(const output::event::Released& released);
  void print(const output::event::ReleasePending& pending);
  void print(const output::event::NotRecorded& unrecorded);
  void print(const output::event::Interrupted& interrupted);
  void print(const output::event::LeftRunning& left);
  void print(const output::event::Concluded& concluded);
  void print(const output::event::NotAcquired&) {}  ///< print(Concluded) reports it
  void status(std::string text) const { notify_service("STATUS", std::move(text)); }
  void notify_service(const std::string& name, std::string value) const {
    if (service_) service_(name, std::move(value));
  }

  const output::Console& console_;
  const Clock& clock_;
  std::string key_;
  pid_t job_group_;
  bool json_;
  bool reports_end_;
  NotifyService service_;
  const proc::WatchedProcess* script_ = nullptr;  ///< speak_to()
  std::optional<WaitReport> wait_;                ///< of the current wait
  std::optional<StatusLine> line_;                ///< the status line that shows wait_
  bool wait_shown_ = false;
  bool reported_unsubscribed_ = false;
  bool reported_cannot_publish_ = false;
  bool stop_logged_ = false;  ///< the audit trail has the stop request
  std::string status_;        ///< `; exit status 0`, once the command has ended
};

}  // namespace redlock::output
