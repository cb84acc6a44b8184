#pragma once

#include <sys/types.h>

#include <asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string>

#include "child/channel.hpp"
#include "child/front_link.hpp"
#include "child/job_control.hpp"
#include "child/shared_page.hpp"
#include "child/signals.hpp"
#include "child/supervisor.hpp"
#include "run/finish.hpp"
#include "run/nested_runs.hpp"
#include "run/session.hpp"

namespace redlock::run {

/// How the holder process deals with the front process and the shell's job: signals that are passed
/// on, ^Z, fg and bg, and whether the front process still lives. Single-threaded; all arguments
/// must outlive the executor's run().
class Job {
 public:
  /// `group`: the process group that the command joins, 0: one of its own.
  Job(Session& session, child::Channel channel, child::SignalGate& gate, child::SharedPage& page,
      pid_t front, pid_t group, child::Shield shield);

  /// From here on a signal, or the end of another guard, ends the wait; later the signal goes
  /// to the command.
  void listen();

  [[nodiscard]] std::optional<pid_t> group() const noexcept { return group_; }

  /// The signal that ended the wait; 0: none.
  [[nodiscard]] int ended_by() const noexcept { return ended_by_; }

  /// Whether a process that guards the command with us was killed: the front process, or the
  /// shield. Then what runs is killed, and no wait goes on.
  [[nodiscard]] bool guard_is_gone() const noexcept { return link_->gone() || shield_is_gone_; }
  [[nodiscard]] bool shield_is_gone() const noexcept { return shield_is_gone_; }

  /// Asks the front process whether the command may start. False when it does not answer: the job
  /// is paused, or the front process is gone.
  asio::awaitable<bool> may_start();

  /// After may_start() was false: waits until the job continues.
  asio::awaitable<void> until_continued();

  /// The command runs under this supervisor.
  void command_started(child::Supervisor& supervisor);

  /// The command itself has ended; its supervisor still learns of descendants that end later.
  void command_ended(bool told_to_end);

  /// Nested runs that the command left behind: from now on signals go to them, too.
  void set_nested_runs(std::shared_ptr<NestedRuns> runs) { nested_runs_ = std::move(runs); }

  /// Handles a signal that the front process, or the parent run, passes on.
  void on_signal(const child::PassedSignal& signal);

  /// See child::FrontLink::notify_service().
  void notify_service(const std::string& name, std::string value) {
    link_->notify_service(name, std::move(value));
  }

  /// Sends the final report to the front process, which ends in the same way and writes the text to
  /// --status-fd.
  void report(const Finish& finish, std::string text) const;

 private:
  void on_child();
  void on_guard_gone(child::Guard which);
  asio::awaitable<void> pass_on(child::PassedSignal signal);
  asio::awaitable<child::Reached> reached_by(child::PassedSignal signal);

  Session& session_;
  std::optional<pid_t> group_;
  std::shared_ptr<child::FrontLink> link_;
  std::optional<child::HolderJobControl> control_;  ///< where the command is in the job's process
                                                    ///< group
  child::Supervisor* supervisor_ = nullptr;         ///< of the command, once it was started
  std::shared_ptr<NestedRuns> nested_runs_;
  child::Shield shield_;  ///< until listen()
  bool shield_is_gone_ = false;
  int ended_by_ = 0;
};

}  // namespace redlock::run
