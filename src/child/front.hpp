#pragma once

#include <optional>
#include <vector>

#include "child/channel.hpp"
#include "child/ci_cookies.hpp"
#include "child/descriptors.hpp"
#include "child/job_control.hpp"
#include "child/shared_page.hpp"
#include "child/shield.hpp"
#include "child/signal_relay.hpp"
#include "child/signals.hpp"
#include "child/watchdog.hpp"

namespace redlock::child {

/// The guard between the user and the holder process: it owns the terminal, the signals and the
/// exit status. It has no network and no threads.
///  - It passes signals to the holder process, which alone signals the command, with what it knows
///    of whether the command has got them itself (SignalRelay).
///  - When a command in our group is paused (^Z, a read from the background, its own `suspend`), it
///    pauses, too, and no sooner than that (FrontJobControl).
///  - It stops the command if the holder process does not (Watchdog), or dies.
///  - It continues a Shield that was stopped, and reaps the orphans of others that it inherits.
class Front {
 public:
  /// Inherited descriptors except `keep_fd` are closed as soon as the command runs, so that pipes
  /// end when the command closes them. `cgroup`: the cgroup of the command, or null.
  Front(SignalGate& gate, StopPlan plan, bool shares_group, std::optional<int> keep_fd,
        const Cgroup* cgroup);

  /// Forks; returns true in the holder process, which then takes its end of the channel and the
  /// page, and closes the inherited descriptors when the command runs. Call it once. Where we have
  /// children that do not belong to the command, a Shield is forked in between. `argc` and `argv`
  /// are main's: all our other processes get names of their own, so that a signal aimed at this
  /// program or its arguments misses them; with CiCookies::hide the guards are missed by the end of
  /// a CI job, too.
  bool fork_holder(int argc, char** argv, CiCookies cookies = CiCookies::hide);

  [[nodiscard]] Channel take_channel() { return std::move(*holder_end_); }
  [[nodiscard]] Shield take_shield() { return std::move(shield_); }
  [[nodiscard]] SharedPage& page() noexcept { return *page_; }

  /// The front process, and the process group of its job, which the command joins; nullopt: the
  /// command gets a group of its own.
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] std::optional<pid_t> job_group() const noexcept { return job_group_; }

  [[nodiscard]] const InheritedDescriptors& inherited() const noexcept { return inherited_; }

  /// Stands guard until the holder process has reported how it ended, or failed.
  Verdict guard();

  /// Waits for the end of the holder process itself: its resource usage, and so the command's,
  /// becomes ours.
  void wait_for_holder();

  /// Tells a holder process that would outlive us that its report did not reach the script, and
  /// waits for its end.
  void dismiss_holder();

  /// Tells a holder process that outlives us that its report reached the script.
  void tell_handed_over() const { front_end_->send({Message::Kind::handed_over, 0, {}}); }

 private:
  void pass_on(const std::vector<PassedSignal>& signals);
  void pass_on(const PassedSignal& signal);
  void on_message(const Message& message);
  void wait_for_event();
  void arm(Instant when);

  SignalGate& gate_;
  pid_t pid_;
  std::optional<pid_t> job_group_;
  SharedPagePtr page_;
  SignalRelay relay_;
  InheritedDescriptors inherited_ = InheritedDescriptors::capture();
  std::optional<int> keep_fd_;
  FrontJobControl job_control_;
  Watchdog watchdog_;
  std::optional<Channel> front_end_;
  std::optional<Channel> holder_end_;
  Shield shield_;  ///< in the holder process
  UniqueFd timer_;
  Instant armed_ = Instant::max();  ///< what the timer is set to
  std::optional<Verdict> verdict_;
  bool command_began_ = false;
};

}  // namespace redlock::child
