#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "child/channel.hpp"
#include "child/job_control.hpp"
#include "child/shared_page.hpp"
#include "child/signal_relay.hpp"
#include "child/signals.hpp"
#include "child/stop_plan.hpp"
#include "child/tree.hpp"

namespace redlock::child {

/// How it all ended, as the front process must pass it on.
struct Verdict {
  enum class Source {
    report,          ///< the holder process reported it
    holder_died,     ///< the holder process was killed; the command was stopped
    holder_stopped,  ///< another process stopped it (SIGSTOP); the front process stopped the
                     ///< command
    holder_starved,  ///< it was ready to run but got no CPU; the front process stopped the command
    holder_hung,     ///< it waited for something other than its command; the front process stopped
                     ///< the command
  };
  Source source = Source::report;
  bool unconfirmed = false;  ///< a process of the command could not be killed
  Duration late{};           ///< how long after the deadline all of it was seen dead; zero: in
                             ///< time
  std::vector<pid_t> left;   ///< unconfirmed: the processes that still live
  int exit_code = 0;
  int signal = 0;      ///< not 0: to die of
  std::string report;  ///< what --status-fd gets
};

/// The guard between the user and the holder process: it owns the terminal, the signals and the
/// exit status, and is a watchdog over the holder process. It has no network and no threads. It
/// passes signals to the holder process, which alone signals the command, each exactly once
/// (SignalRelay).
/// When a command in our group is paused (^Z, a read from the background, its own `suspend`), we
/// pause, too, and no sooner than that.
/// If the holder process does not stop the command in time, the front process does, a quarter of
/// the margin later; if the holder process dies, at once. While the holder process is killing, the
/// front process helps it. Only a holder process that does not begin to kill for another quarter of
/// the margin, or makes no progress for half of it, is killed, too, and its descendants become ours
/// to reap.
class Front {
 public:
  /// Inherited descriptors except `keep_fd` are closed as soon as the command runs, so that pipes
  /// end when the command closes them. `cgroup`: the cgroup of the command, or null.
  Front(SignalGate& gate, StopPlan plan, bool shares_group, std::optional<int> keep_fd,
        const Cgroup* cgroup);

  /// Forks; returns true in the holder process, which then takes its end of the channel and the
  /// page. Call it once. Where we have children that do not belong to the command, a Shield is
  /// forked in between. `argc` and `argv` are main's: both processes get names of their own, so
  /// that a signal aimed at this program or its arguments misses them.
  bool fork_holder(int argc, char** argv);

  [[nodiscard]] Channel take_channel() { return std::move(*holder_end_); }
  [[nodiscard]] SharedPage& page() noexcept { return *page_; }

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
  void pass_on(const std::vector<int>& signals);
  void pass_on(int signal);
  void on_message(const Message& message);
  void watch(Instant now);
  void take_over(Verdict::Source source);
  [[nodiscard]] bool kill_and_confirm(Instant until);
  [[nodiscard]] pid_t holder() const;
  [[nodiscard]] Verdict::Source state_of_holder() const;
  [[nodiscard]] Instant next_instant() const;
  [[nodiscard]] Instant terminate_at(Instant deadline) const {
    return kill_at(deadline) - plan_.grace;
  }
  [[nodiscard]] Instant kill_at(Instant deadline) const;
  void wait_for_event();

  SignalGate& gate_;
  SignalRelay relay_;
  StopPlan plan_;
  std::optional<int> keep_fd_;
  SharedPagePtr page_;
  FrontJobControl job_control_;
  ProcessTree tree_;
  std::optional<Channel> front_end_;
  std::optional<Channel> holder_end_;
  UniqueFd timer_;
  pid_t child_ = 0;  ///< the holder process, or its shield
  bool shielded_ = false;
  bool reaped_ = false;      ///< whether child_ was reaped
  Instant helped_;           ///< when we last helped the holder process to kill
  bool terminated_ = false;  ///< the command got its stop signal from us
  std::optional<Verdict> verdict_;
};

}  // namespace redlock::child
