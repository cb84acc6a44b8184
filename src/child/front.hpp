#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "child/channel.hpp"
#include "child/job_control.hpp"
#include "child/shared_page.hpp"
#include "child/signals.hpp"
#include "child/stop_plan.hpp"
#include "child/tree.hpp"
#include "child/witness.hpp"

namespace redlock::child {

/// How it all ended, as front must pass it on.
struct Verdict {
  enum class Source {
    report,          ///< the holder said so
    holder_died,     ///< the holder was killed; the command was stopped
    holder_stopped,  ///< somebody stopped the holder (SIGSTOP); the front process stopped the command
    holder_starved,  ///< the holder was ready to run and got no CPU; the front process stopped the command
    holder_hung,     ///< the holder waited for something else than its command; the front process stopped the command
  };
  Source source = Source::report;
  bool unconfirmed = false;     ///< something of the command could not be killed
  Duration late{};              ///< how long after the deadline all of it was seen dead; zero: in time
  std::vector<pid_t> left;      ///< unconfirmed: what still lives
  int exit_code = 0;
  int signal = 0;      ///< not 0: to die of
  std::string report;  ///< what --status-fd gets
};

/// The guard that stays in front of the user: the terminal, signals, the exit status, and a watchdog over the holder. It has no network and
/// no threads. Signals go to the holder, which alone signals the command, each exactly once:
///  - what the keyboard sent (INT, QUIT), the command in our group has got already;
///  - with a controlling terminal, what was sent to our whole group (the witness, asked 10 ms later, tells), too;
///  - a signal that comes twice within 10 ms (`timeout` sends it to us and to our group) counts once.
/// A command in our group that is stopped (^Z, a read from the background, its own `suspend`) stops us, too, and no sooner than that.
/// Should the holder not stop the command in time, front does, a quarter of the margin later; should it die, at once. A holder that is
/// at it is helped. Only one that makes no progress for a quarter of the margin is killed, too, and what it ran becomes ours to reap.
class Front {
 public:
  /// What we inherited is closed as soon as the command runs, except `keep_fd`, so that pipes end when the command lets go of them.
  /// `cgroup`: what the command is put into, or null.
  Front(SignalGate& gate, StopPlan plan, bool shares_group, std::optional<int> keep_fd, const Cgroup* cgroup);

  /// Forks; true in the holder, which then takes its end of the channel and the page. Once. Where we have children that are none of
  /// the command's, a Shield stands between. `argc` and `argv` are main's: both get names of their own, so that what is aimed at this
  /// program or its arguments misses them.
  bool fork_holder(int argc, char** argv);

  [[nodiscard]] Channel take_channel() { return std::move(*holder_end_); }
  [[nodiscard]] SharedPage& page() noexcept { return *page_; }

  /// Stands guard until the holder has said how it ended, or failed.
  Verdict guard();

  /// Waits for the holder's own end: its usage, and so the command's, becomes ours.
  void wait_for_holder();

  /// Lets a holder that would outlive us know that its report did not reach the script, and waits for its end.
  void dismiss_holder();

  /// Tells a holder that outlives us that its report reached the script.
  void tell_handed_over() const { front_end_->send({Message::Kind::handed_over, 0, {}}); }

 private:
  enum class Phase { waiting, running };

  /// A signal not passed on yet: it may turn out to be the whole group's.
  struct Held {
    bool delivered;  ///< the terminal sent it: the command has it
    Instant until;   ///< then the witness is asked; afterwards: it may take so long
    int question;    ///< to the witness; 0: not asked yet
  };

  void on_signal(const ReceivedSignal& signal);
  void pass_on(int signal);
  void decide_held(Instant now);
  void on_message(const Message& message);
  void watch(Instant now);
  void take_over(Verdict::Source source);
  [[nodiscard]] bool kill_and_confirm(Instant until);
  [[nodiscard]] pid_t holder() const;
  [[nodiscard]] Verdict::Source state_of_holder() const;
  [[nodiscard]] Instant next_instant() const;
  [[nodiscard]] Instant terminate_at(Instant deadline) const { return kill_at(deadline) - plan_.grace; }
  [[nodiscard]] Instant kill_at(Instant deadline) const;
  void wait_for_event();

  SignalGate& gate_;
  StopPlan plan_;
  std::optional<int> keep_fd_;
  SharedPagePtr page_;
  FrontJobControl job_control_;
  ProcessTree tree_;
  std::optional<Channel> front_end_;
  std::optional<Channel> holder_end_;
  std::unique_ptr<Witness> witness_;
  UniqueFd timer_;
  pid_t child_ = 0;        ///< the holder, or the shield in front of it
  bool shielded_ = false;
  bool reaped_ = false;    ///< child_ was
  Instant helped_;         ///< the holder to kill, last
  Phase phase_ = Phase::waiting;
  std::map<int, Held> held_;          ///< with a witness, by signal: waits for what it says
  std::map<int, Instant> passed_on_;  ///< without, by signal: the same again until then is the same signal
  std::set<int> left_to_command_;     ///< not passed on since `go`, as the command has them
  bool shares_group_;
  bool terminated_ = false;   ///< the command got its stop signal from us
  std::optional<Verdict> verdict_;
};

}  // namespace redlock::child
