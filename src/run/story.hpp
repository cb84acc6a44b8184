#pragma once

#include <string>

#include "output/console.hpp"
#include "output/event.hpp"
#include "run/options.hpp"

namespace redlock::run {

/// The events as messages: what went wrong always, the end of a wait that was shown, and the rest
/// with -v.
class Story final : public output::EventListener {
 public:
  /// Both must outlive it.
  Story(const output::Console& console, const LockOptions& options,
        std::optional<Duration> max_hold);

  void on(const output::event::Any& event, Milliseconds at) override;

 private:
  void tell(const output::event::Waiting&) {}
  void tell(const output::event::WaitShown&) { wait_shown_ = true; }
  void tell(const output::event::Superseded&) {}   ///< the outcome says it
  void tell(const output::event::NotAcquired&) {}  ///< the same
  void tell(const output::event::Fresh&) {}        ///< the same
  void tell(const output::event::Acquired& acquired);
  void tell(const output::event::RenewalFailed& failed);
  void tell(const output::event::RenewedAgain&);
  void tell(const output::event::Lost& lost);
  void tell(const output::event::Stopping& stopping);
  void tell(const output::event::Awaiting&) {}  ///< the reporter names the processes
  void tell(const output::event::Ended& ended);
  void tell(const output::event::Released& released);

  const output::Console& console_;
  std::string key_;
  std::optional<Duration> max_hold_;
  std::string status_;  ///< `exit status 0`, once the command has ended
  bool wait_shown_ = false;
};

}  // namespace redlock::run
