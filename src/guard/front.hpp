#pragma once

#include <optional>
#include <vector>

#include "guard/channel.hpp"
#include "guard/job_control.hpp"
#include "guard/shared_page.hpp"
#include "guard/shield.hpp"
#include "guard/signal_relay.hpp"
#include "guard/signals.hpp"
#include "guard/watchdog.hpp"
#include "proc/descriptors.hpp"
#include "proc/title.hpp"

namespace redlock::guard {

/// The process between the user and the holder process, and a guard of the command: it owns the
/// terminal, the signals and the exit status. It uses no network and has no threads.
///  - It passes signals on to the holder process, which alone signals the command. With each it
///    reports whether the command has received it already (SignalRelay).
///  - When a command in our group is paused (by ^Z, a read from the background, or its own
///    `suspend`), it pauses after it (FrontJobControl).
///  - It stops the command if the holder process dies, or fails to stop it in time (Watchdog).
///  - It continues a Shield that was stopped, and reaps the orphans that it inherits from foreign
///    children.
class Front {
 public:
  /// Closes inherited descriptors except `keep_fd` as soon as the command runs, so that pipes end
  /// when the command closes them. `cgroup`: the cgroup of the command, or null. Throws
  /// std::system_error.
  Front(SignalGate& gate, StopPlan plan, bool shares_group, std::optional<int> keep_fd,
        const proc::Cgroup* cgroup);

  /// Forks; returns true in the holder process, which then takes its end of the channel and the
  /// page, and closes the inherited descriptors when the command runs. Call it once. If we have
  /// children that do not belong to the command, a Shield is forked between the two. `argc` and
  /// `argv` are main's: our other processes get titles of their own, so that a signal aimed at this
  /// program's name or arguments misses them. With CiCookies::hide the clean-up at the end of a CI
  /// job misses them, too. Throws std::system_error.
  bool fork_holder(int argc, char** argv, proc::CiCookies cookies = proc::CiCookies::hide);

  [[nodiscard]] Channel take_channel() { return std::move(*holder_end_); }
  [[nodiscard]] Shield take_shield() { return std::move(shield_); }
  [[nodiscard]] SharedPage& page() noexcept { return *page_; }

  /// The front process, and the process group of its job, which the command joins; nullopt: the
  /// command gets a group of its own.
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] std::optional<pid_t> job_group() const noexcept { return job_group_; }

  [[nodiscard]] const proc::InheritedDescriptors& inherited() const noexcept { return inherited_; }

  /// Guards the holder process and its command until the final report has come, or the holder
  /// process has failed and its command is dead.
  HolderExit guard();

  /// Waits until the holder process itself has ended and reaps it, which adds its resource usage,
  /// including the command's, to ours.
  void wait_for_holder();

  /// Closes the channel to a background holder process, so that it learns that its report did not
  /// reach the script, and waits for its end.
  void dismiss_holder();

  /// Confirms to a background holder process that its report has reached the script.
  void confirm_hand_over() const { front_end_->send({Message::Kind::handed_over, 0, {}}); }

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
  proc::InheritedDescriptors inherited_ = proc::InheritedDescriptors::capture();
  std::optional<int> keep_fd_;
  FrontJobControl job_control_;
  Watchdog watchdog_;
  std::optional<Channel> front_end_;
  std::optional<Channel> holder_end_;
  Shield shield_;  ///< in the holder process
  UniqueFd timer_;
  Instant armed_ = Instant::max();  ///< when the timer fires
  std::optional<HolderExit> holder_exit_;
};

}  // namespace redlock::guard
