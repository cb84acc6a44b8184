#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "guard/command.hpp"
#include "guard/shared_page.hpp"
#include "guard/tree.hpp"
#include "support/boot_clock.hpp"

namespace redlock::guard {

/// The command of --on-stop, run when the main command is stopped, in order to end work that a
/// daemon or another host does for it. It is a child of the holder process, in a process group of
/// its own and inside the command's isolation, so it is part of the tree that must be dead before
/// the lock is released. It runs at most once. While it runs, the tree spares it and what is below
/// it.
class StopHook {
 public:
  /// Both must outlive it; `page.hook_began` is set when it starts.
  StopHook(SharedPage& page, ProcessTree& tree) : page_(page), tree_(tree) {}

  /// Sets what to run; without this call there is no hook. `options`: those of the main command.
  /// `inherited` must outlive this.
  void prepare(Command command, SpawnOptions options, const InheritedSignals& inherited);

  /// Starts it, with `reason` in REDLOCK_STOP_REASON. Does nothing after the first call, or if
  /// there is no hook. `until`: when tend() kills it.
  void start(std::string_view reason, Instant until);

  /// Starts it if it could not be forked so far: the command may have used up a limit of
  /// processes, and those that die make room.
  void retry();

  /// A child of ours has ended, which may be the hook.
  void note_end(const Ended& ended) noexcept;

  /// Looks which of the processes that tend() has killed still live.
  void note_deaths();

  /// When its time has passed, kills it and its descendants, or gives up to fork it, and waits for
  /// their death until `limit`.
  void tend(Instant now, Instant limit);

  [[nodiscard]] bool exists() const noexcept { return command_.has_value(); }

  [[nodiscard]] bool is_running() const noexcept { return pid_ != 0; }

  /// Whether it runs, or has yet to be forked by retry(), or something that tend() has killed still
  /// dies.
  [[nodiscard]] bool is_pending() const noexcept { return pid_ != 0 || is_unforked_ || is_dying(); }

  /// When its time has passed, and after that when the wait for the killed ends; Instant::max() if
  /// neither is due.
  [[nodiscard]] Instant until() const noexcept { return until_; }

  /// When to call retry(), note_deaths() and tend() next.
  [[nodiscard]] Instant next(Instant now) const noexcept;

  /// Why the hook may not have done its work, in one clause; empty: it succeeded, or was never
  /// needed.
  [[nodiscard]] std::string failure() const;

 private:
  void kill(Instant limit);
  void stop_waiting();
  [[nodiscard]] bool is_dying() const noexcept { return !dying_.empty(); }

  SharedPage& page_;
  ProcessTree& tree_;
  std::optional<Command> command_;
  SpawnOptions options_;
  const InheritedSignals* inherited_ = nullptr;
  pid_t pid_ = 0;
  Instant until_ = Instant::max();
  std::optional<int> status_;
  std::vector<pid_t> dying_;  ///< what kill() has killed and still lives, itself included
  bool is_unforked_ = false;  ///< retry() has yet to fork it
  std::string not_started_;   ///< why it could not be started
};

}  // namespace redlock::guard
